"""What a run of a scenario comes to."""

from __future__ import annotations

import pytest

from studio.bench.plan import ChatLoad
from studio.bench.scenarios import Scenario, ScenarioRun, count_equal_texts, make_prompts
from studio.bench.stream import Reply

LOAD = ChatLoad(num_chats=3, prompt_words=5)


def reply(tokens: int, times: list[float], **more: object) -> Reply:
    made = Reply(0.0, token_times_s=times, completion_tokens=tokens)
    made.error = "ended" if more.get("is_broken") else None
    return made


def test_prompts_are_of_one_length_and_never_begin_alike() -> None:
    prompts = [one for seed in range(20) for one in make_prompts(LOAD, seed)]
    assert {len(prompt.split()) for prompt in prompts} == {5}
    assert len({prompt[:24] for prompt in prompts}) == 60
    assert make_prompts(LOAD, 3) == make_prompts(LOAD, 3)


def test_only_the_tokens_of_completed_chats_are_useful() -> None:
    run = ScenarioRun(
        (
            reply(10, [1.0, 1.5, 3.0]),
            reply(9, [2.0]),
            reply(10, [], is_broken=True),
            reply(10, [4.0, 4.1]),
        ),
        reply_tokens=10,
        wall_s=5.0,
    )
    assert run.completed == 2
    assert run.useful_tokens_s == 4.0
    assert run.first_tokens_s == [1.0, 2.0, 4.0]
    assert run.gap_ms(1.0) == 1500
    assert run.gap_ms(0.5) == 500


def test_parks_are_counted_as_streams_were_told() -> None:
    parked = reply(1, [1.0])
    parked.notes = [
        (1.0, "preempted"),
        (1.1, "preempt-keepalive"),
        (1.2, "resumed"),
        (2.0, "preempted"),
    ]
    assert ScenarioRun((parked, reply(1, [])), reply_tokens=1, wall_s=1.0).parks == 2


def test_texts_are_compared_chat_by_chat_and_silence_is_no_text() -> None:
    runs = []
    for texts in (["a", "b"], ["", ""], ["a", "c"]), (["ab", ""], [], ["a", "b"]):
        replies = [reply(1, [1.0]) for _ in texts]
        for one, pieces in zip(replies, texts, strict=True):
            one.pieces = pieces
        runs.append(ScenarioRun(tuple(replies), reply_tokens=1, wall_s=1.0))
    assert count_equal_texts(*runs) == 1


@pytest.mark.parametrize(
    ("scenario", "tokens"),
    [(Scenario.OVERFLOW, 2048), (Scenario.FITS, 8192), (Scenario.ONE_BY_ONE, 8192)],
)
def test_each_scenario_has_its_pool(scenario: Scenario, tokens: int) -> None:
    assert scenario.pool_tokens(LOAD) == tokens
