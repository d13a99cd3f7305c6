"""The real engine on a tiny random model: every request ends once, nobody's failure is another's, nothing leaks."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api import (
    Chat,
    ChatMessage,
    Failed,
    Finished,
    FinishReason,
    Parked,
    Restored,
    SamplingParams,
    Started,
    TokenDelta,
    TokenIds,
)
from engine.errors import (
    ContextLengthExceeded,
    InvalidRequest,
    ModelUnavailable,
)
from engine.factory import create_engine
from engine.runtime.engine import Engine
from engine.runtime.model_runner import ModelRunner
from fakes.engine_asks import GREEDY, ask, assert_pool_is_empty, load
from fakes.listening import Ear, run_all


def test_a_request_without_a_model_is_told_so(engine: Engine) -> None:
    end = run_all(engine, [ask("a")]).wait_end("a")
    assert isinstance(end, Failed)
    assert isinstance(end.error, ModelUnavailable)


def test_events_of_a_request_come_in_order_and_end_once(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=512)
    ear = run_all(engine, [ask("a")])
    kinds = [type(event) for event in ear.of("a")]
    assert kinds[0] is Started
    assert kinds[-1] is Finished
    assert set(kinds[1:-1]) == {TokenDelta}
    assert len(ear.tokens("a")) == 12
    end = ear.wait_end("a")
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.LENGTH
    assert end.usage.completion_tokens == 12
    assert_pool_is_empty(engine)


def test_together_or_alone_in_any_chunks_the_text_is_the_same(
    engine: Engine, model_path: Path
) -> None:
    sampled = SamplingParams(temperature=0.8, seed=7)
    requests = [
        ask(f"{kind}{n}", f"once upon a time {n} " * (5 * n + 1), max_tokens=20, sampling=params)
        for kind, params in (("greedy", GREEDY), ("sampled", sampled))
        for n in range(3)
    ]
    alone: dict[str, list[int]] = {}
    load(engine, model_path, pool_tokens=1024, batch_tokens=256)
    for request in requests:
        alone[request.request_id] = run_all(engine, [request]).tokens(request.request_id)
    for batch_tokens, parallel in ((256, 6), (16, 6), (64, 2)):
        load(engine, model_path, pool_tokens=2048, batch_tokens=batch_tokens, parallel=parallel)
        ear = run_all(engine, requests)
        assert {r.request_id: ear.tokens(r.request_id) for r in requests} == alone


def test_a_pool_too_small_parks_the_youngest_and_changes_no_token(
    engine: Engine, model_path: Path
) -> None:
    requests = [ask(f"r{n}", f"chat number {n} says", max_tokens=100) for n in range(4)]
    load(engine, model_path, pool_tokens=2048)
    roomy = run_all(engine, requests)
    load(engine, model_path, pool_tokens=256)
    tight = run_all(engine, requests)
    assert any(isinstance(event, Parked) for event in tight.events)
    for request in requests:
        ended = tight.wait_end(request.request_id)
        assert isinstance(ended, Finished)
        assert tight.tokens(request.request_id) == roomy.tokens(request.request_id)
        events = tight.of(request.request_id)
        parks = [e for e in events if isinstance(e, Parked)]
        assert (
            len(parks)
            == len([e for e in events if isinstance(e, Restored)])
            == ended.usage.num_parks
        )
    assert not any(isinstance(e, Parked) for e in tight.of("r0")), "the oldest is never parked"
    assert_pool_is_empty(engine)


def test_requests_beyond_the_seats_wait_and_all_finish(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=1024, parallel=2)
    ear = run_all(engine, [ask(f"r{n}") for n in range(7)])
    assert [type(ear.wait_end(f"r{n}")) for n in range(7)] == [Finished] * 7


def test_abort_frees_everything_in_every_state(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=512, parallel=2)
    ear = Ear(engine)
    for n in range(4):
        engine.submit(ask(f"r{n}", max_tokens=400))
    ear.wait_for(lambda e: isinstance(e, TokenDelta) and e.request_id == "r1")
    for n in (3, 1, 0, 2, 0):  # waiting ones, running ones, and one twice
        engine.abort(f"r{n}")
    engine.abort("never heard of")
    for n in range(4):
        end = ear.wait_end(f"r{n}")
        assert isinstance(end, Finished)
        assert end.reason is FinishReason.ABORTED
    engine.submit(ask("after"))
    ear.wait_end("after")
    assert len([e for e in ear.events if isinstance(e, Finished)]) == 5
    assert_pool_is_empty(engine)


def test_the_next_turn_of_a_chat_finds_its_history(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=2048)
    first = run_all(engine, [ask("one", "tell me a story " * 20, max_tokens=40)])
    history = first.of("one")[0].prompt_tokens  # type: ignore[union-attr]
    prompt = engine._model.tokenizer.encode("tell me a story " * 20, add_special=True)  # type: ignore[union-attr]
    second = run_all(engine, [ask("two", prompt=TokenIds(ids=tuple(prompt + first.tokens("one"))))])
    end = second.wait_end("two")
    assert isinstance(end, Finished)
    assert end.usage.cached_tokens >= (history + 39) // 32 * 32 - 32 > history - 32
    cold = create_engine()
    try:
        load(cold, model_path, pool_tokens=2048)  # type: ignore[arg-type]
        again = run_all(
            cold, [ask("two", prompt=TokenIds(ids=tuple(prompt + first.tokens("one"))))]
        )
        assert again.tokens("two") == second.tokens("two")
    finally:
        cold.shutdown()


def test_stop_strings_end_the_text_before_them_across_tokens(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=512)
    whole = run_all(engine, [ask("free", max_tokens=40)]).text("free")
    stop = whole[len(whole) // 2 : len(whole) // 2 + 4]
    ear = run_all(engine, [ask("stopped", max_tokens=40, stop=("\0 never", stop))])
    end = ear.wait_end("stopped")
    assert isinstance(end, Finished)
    assert (end.reason, end.stop_text) == (FinishReason.STOP, stop)
    assert ear.text("stopped") == whole[: whole.index(stop)]
    assert_pool_is_empty(engine)


def test_logprobs_come_with_their_tokens(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=512)
    ear = run_all(engine, [ask("a", sampling=SamplingParams(temperature=0.0, logprobs=3))])
    deltas = [e for e in ear.of("a") if isinstance(e, TokenDelta)]
    for delta in deltas:
        (chosen,) = delta.logprobs
        assert chosen.token_id == delta.token_ids[0]
        assert chosen.logprob <= 0
        assert len(chosen.top) == 3
        assert chosen.top[0].token_id == chosen.token_id, "greedy takes the likeliest"


def test_a_prompt_longer_than_the_window_harms_nobody(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=256)
    ear = run_all(engine, [ask("fine"), ask("long", prompt=TokenIds(ids=(5,) * 300)), ask("fine2")])
    end = ear.wait_end("long")
    assert isinstance(end, Failed)
    assert isinstance(end.error, ContextLengthExceeded)
    assert end.error.limit_tokens == 256
    assert end.error.needed_tokens == 300
    assert [type(ear.wait_end(i)) for i in ("fine", "fine2")] == [Finished, Finished]


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": TokenIds(ids=(1, 10**9))},
        {"prompt": TokenIds(ids=(-1,))},
        {"sampling": SamplingParams(logit_bias=((10**9, 1.0),))},
    ],
)
def test_a_request_that_makes_no_sense_is_refused_alone(
    engine: Engine, model_path: Path, fields: dict[str, object]
) -> None:
    load(engine, model_path, pool_tokens=256)
    ear = run_all(engine, [ask("bad", **fields), ask("fine")])
    end = ear.wait_end("bad")
    assert isinstance(end, Failed)
    assert isinstance(end.error, InvalidRequest)
    assert isinstance(ear.wait_end("fine"), Finished)


def test_an_empty_prompt_gets_an_empty_reply(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=256)
    ear = run_all(engine, [ask("empty", prompt=TokenIds(ids=())), ask("fine")])
    end = ear.wait_end("empty")
    assert isinstance(end, Finished)
    assert (end.reason, end.usage.prompt_tokens, end.usage.completion_tokens) == (
        FinishReason.STOP,
        0,
        0,
    )
    assert isinstance(ear.wait_end("fine"), Finished)


def test_max_tokens_zero_reads_the_prompt_and_says_nothing(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=256)
    ear = run_all(engine, [ask("a", max_tokens=0)])
    end = ear.wait_end("a")
    assert isinstance(end, Finished)
    assert (end.reason, end.usage.completion_tokens, ear.text("a")) == (FinishReason.LENGTH, 0, "")


def test_a_chat_is_rendered_by_the_models_template(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, pool_tokens=512)
    chat = Chat(messages=(ChatMessage(role="user", content="hello"),))
    ear = run_all(engine, [ask("a", prompt=chat)])
    assert isinstance(ear.wait_end("a"), Finished)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_tokens_are_the_same_where_the_kernels_find_nothing(
    engine: Engine, model_path: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    load(engine, model_path, pool_tokens=512)
    asked = SamplingParams(temperature=temperature, seed=11)
    found = run_all(engine, [ask("found", sampling=asked)]).tokens("found")
    monkeypatch.setattr(ModelRunner, "found", lambda runner: ())
    assert run_all(engine, [ask("row", sampling=asked)]).tokens("row") == found
