"""A prompt's own log probabilities: those of a reply that says the same, bit for bit, whatever happens beside it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from engine.api import (
    Finished,
    FinishReason,
    Parked,
    PromptRead,
    Request,
    RequestGroup,
    SamplingParams,
    Started,
    TokenDelta,
    TokenIds,
    TokenLogprob,
)
from engine.errors import InvalidRequest
from engine.runtime.engine import Engine
from fakes.listening import Ear, run_all
from fakes.parking_rig import ask, assert_nothing_is_held, load, park_while_read

GREEDY = SamplingParams(temperature=0, logprobs=2)
PROMPT = (5, 6, 7, 8)
REPLY_TOKENS = 60


def scored(name: str, ids: tuple[int, ...], *, max_tokens: int = 0) -> Request:
    return ask(
        name, prompt=TokenIds(ids=ids), sampling=GREEDY, max_tokens=max_tokens, tells_prompt=True
    )


def scores_of(ear: Ear, name: str) -> tuple[TokenLogprob, ...]:
    (told,) = (event for event in ear.of(name) if isinstance(event, PromptRead))
    assert isinstance(ear.of(name)[-1], Finished)
    return told.tokens


def spoken(engine: Engine) -> tuple[tuple[int, ...], tuple[TokenLogprob, ...]]:
    """A reply with its log probabilities, which its tokens must have as a prompt too."""
    request = ask("s", prompt=TokenIds(ids=PROMPT), sampling=GREEDY, max_tokens=REPLY_TOKENS)
    deltas = [e for e in run_all(engine, [request]).of("s") if isinstance(e, TokenDelta)]
    ids = tuple(token_id for delta in deltas for token_id in delta.token_ids)
    return ids, tuple(token for delta in deltas for token in delta.logprobs)


def assert_scores(scores: tuple[TokenLogprob, ...], reply: tuple[TokenLogprob, ...]) -> None:
    assert math.isnan(scores[0].logprob)
    assert scores[0].token_id == PROMPT[0]
    assert scores[len(PROMPT) :] == reply


def test_they_are_those_of_the_same_tokens_as_a_reply(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=2048)
    ids, reply = spoken(engine)
    ear = run_all(engine, [scored("a", PROMPT + ids)])
    assert_scores(scores_of(ear, "a"), reply)
    assert not any(isinstance(event, TokenDelta) for event in ear.of("a"))
    end = ear.wait_end("a")
    assert isinstance(end, Finished)
    assert (end.reason, end.usage.completion_tokens) == (FinishReason.LENGTH, 0)


def test_a_prefix_that_is_known_is_computed_all_the_same(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=2048)
    ids, reply = spoken(engine)
    for _ in range(2):
        ear = run_all(engine, [scored("a", PROMPT + ids)])
        (started,) = (event for event in ear.of("a") if isinstance(event, Started))
        assert started.cached_tokens == 0
        assert_scores(scores_of(ear, "a"), reply)


@pytest.mark.parametrize("way", [{}, {"test_preempt_copy": True}, {"preempt_ram_mib": 1}])
def test_beside_others_and_parked_they_are_the_same(
    engine: Engine, model_path: Path, way: dict[str, object]
) -> None:
    load(engine, model_path, pool_tokens=2048)
    ids, reply = spoken(engine)
    load(engine, model_path, **way)
    stop = park_while_read(engine, "a")
    ear = run_all(engine, [scored("a", PROMPT + ids, max_tokens=30), ask("b"), ask("c"), ask("d")])
    stop()
    assert any(isinstance(event, Parked) for event in ear.of("a"))
    assert_scores(scores_of(ear, "a"), reply)
    first_text = next(n for n, e in enumerate(ear.of("a")) if isinstance(e, TokenDelta))
    told = next(n for n, e in enumerate(ear.of("a")) if isinstance(e, PromptRead))
    assert told < first_text
    plain = ask("a", prompt=TokenIds(ids=PROMPT + ids), sampling=GREEDY, max_tokens=30)
    assert run_all(engine, [plain]).tokens("a") == ear.tokens("a")
    assert_nothing_is_held(engine)


def test_several_choices_of_one_prompt_are_told_it_each(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=2048)
    ids, reply = spoken(engine)
    group = RequestGroup(group_id="g", size=2)
    pair = [
        ask(name, prompt=TokenIds(ids=PROMPT + ids), sampling=GREEDY, max_tokens=2,
            tells_prompt=True, group=group)
        for name in ("a", "b")
    ]  # fmt: skip
    ear = run_all(engine, pair)
    for name in ("a", "b"):
        assert_scores(scores_of(ear, name), reply)
    assert ear.tokens("a") == ear.tokens("b")


def test_a_prompt_of_one_token_has_no_probability(engine: Engine, model_path: Path) -> None:
    load(engine, model_path)
    (only,) = scores_of(run_all(engine, [scored("a", (9,), max_tokens=1)]), "a")
    assert (only.token_id, math.isnan(only.logprob), only.top) == (9, True, ())


def test_the_number_of_alternatives_must_be_said() -> None:
    with pytest.raises(InvalidRequest, match="tells_prompt needs logprobs"):
        ask("a", tells_prompt=True)


def test_a_token_may_be_named_that_ends_the_reply(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=2048)
    ids, _ = spoken(engine)
    named = ids[10]
    request = ask(
        "a",
        prompt=TokenIds(ids=PROMPT),
        sampling=GREEDY,
        max_tokens=REPLY_TOKENS,
        stop_ids=(named,),
    )
    ear = run_all(engine, [request])
    end = ear.wait_end("a")
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.STOP
    assert ear.tokens("a") == list(ids[: ids.index(named) + 1])
