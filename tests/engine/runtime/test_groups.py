"""Requests asked together: all enter the line or none does, and those with one prompt share its pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import (
    Failed,
    Finished,
    FinishReason,
    LoadModel,
    LoadOptions,
    Origin,
    Prompt,
    Request,
    RequestGroup,
    SamplingParams,
    Started,
    TokenIds,
    UnloadModel,
)
from engine.errors import ContextLengthExceeded, InvalidRequest, ModelUnavailable
from engine.factory import create_engine
from engine.runtime.engine import Engine
from engine.runtime.groups import MOST_DESERTED, Groups
from engine.runtime.live_request import LiveRequest
from fakes.listening import Ear, run_all
from fakes.tiny_files import write_tiny_gguf


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    ear = Ear(engine)
    engine.control(load_of(write_tiny_gguf(tmp_path)))
    ear.wait_ready()
    ear.close()
    yield engine
    engine.shutdown()


def load_of(path: Path) -> LoadModel:
    options = LoadOptions(pool_tokens=512, parallel=4, threads=1)
    return LoadModel(path=path, name="tiny", options=options)


def ask_together(*prompts: Prompt, **fields: object) -> tuple[Request, ...]:
    group = RequestGroup(group_id="g", size=len(prompts))
    return tuple(
        Request(
            request_id=f"g-{index}",
            origin=Origin.API,
            prompt=prompt,
            sampling=SamplingParams(temperature=0.0),
            max_tokens=8,
            ignore_eos=True,
            group=group,
            **fields,
        )
        for index, prompt in enumerate(prompts)
    )


def ids(count: int, first: int = 5) -> TokenIds:
    return TokenIds(ids=tuple(first + index % 40 for index in range(count)))


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("bad", "error"),
    [(TokenIds(ids=(999_999,)), InvalidRequest), (ids(600), ContextLengthExceeded)],
)
def test_one_bad_prompt_ends_all_before_any_has_started(
    engine: Engine, place: int, bad: TokenIds, error: type[Exception]
) -> None:
    prompts: list[Prompt] = [ids(40), ids(0)]
    prompts.insert(place, bad)
    ear = run_all(engine, ask_together(*prompts))
    ends = [ear.wait_end(f"g-{index}") for index in range(3)]
    assert all(isinstance(end, Failed) and isinstance(end.error, error) for end in ends)
    assert not [event for event in ear.events if isinstance(event, Started)]


def test_replies_are_those_of_requests_asked_alone(engine: Engine) -> None:
    prompts = [ids(40), ids(70, first=9), ids(40)]
    together = run_all(engine, ask_together(*prompts))
    alone = [replace(each, group=None) for each in ask_together(*prompts)]
    for request in alone:
        ear = run_all(engine, [request])
        assert ear.tokens(request.request_id) == together.tokens(request.request_id)
        assert len(ear.tokens(request.request_id)) == 8


def test_an_empty_prompt_among_others_gets_an_empty_reply(engine: Engine) -> None:
    ear = run_all(engine, ask_together(ids(0), ids(40), ids(0)))
    ends = [ear.wait_end(f"g-{index}") for index in range(3)]
    assert all(isinstance(end, Finished) for end in ends)
    assert [len(ear.tokens(f"g-{index}")) for index in range(3)] == [0, 8, 0]


def test_siblings_share_the_pages_of_their_prompt(engine: Engine) -> None:
    ear = run_all(engine, ask_together(ids(100), ids(100), ids(100)))
    started = [event for event in ear.events if isinstance(event, Started)]
    assert len(started) == 3
    usages = [end.usage for end in map(ear.wait_end, ("g-0", "g-1", "g-2"))]
    assert sorted(usage.completion_tokens for usage in usages) == [8, 8, 8]
    assert len({tuple(ear.tokens(f"g-{index}")) for index in range(3)}) == 1


def test_more_siblings_than_seats_all_come_to_their_end(engine: Engine) -> None:
    ear = run_all(engine, ask_together(*[ids(60)] * 7))
    assert len({tuple(ear.tokens(f"g-{index}")) for index in range(7)}) == 1


def test_a_member_that_leaves_while_the_others_gather_does_not_hold_them_up(
    engine: Engine,
) -> None:
    first, second, third = ask_together(ids(40), ids(41), ids(42))
    ear = Ear(engine)
    engine.submit(first)
    engine.submit(second)
    engine.abort(second.request_id)
    engine.submit(third)
    ends = [ear.wait_end(each.request_id) for each in (first, second, third)]
    assert [isinstance(end, Finished) and end.reason for end in ends] == [
        FinishReason.LENGTH,
        FinishReason.ABORTED,
        FinishReason.LENGTH,
    ]


def test_a_group_that_is_not_complete_ends_with_the_model(engine: Engine) -> None:
    first, _ = ask_together(ids(40), ids(41))
    ear = Ear(engine)
    engine.submit(first)
    engine.control(UnloadModel())
    assert isinstance(ear.wait_end(first.request_id), Failed)


def test_a_member_that_comes_after_its_model_has_gone_is_refused_by_the_next_one(
    engine: Engine, tmp_path: Path
) -> None:
    first, second = ask_together(ids(40), ids(41))
    ear = Ear(engine)
    engine.submit(first)
    engine.control(UnloadModel())
    engine.control(load_of(write_tiny_gguf(tmp_path)))
    engine.submit(second)
    for request in (first, second):
        end = ear.wait_end(request.request_id)
        assert isinstance(end, Failed)
        assert isinstance(end.error, ModelUnavailable)


def test_a_member_given_up_while_the_model_is_loaded_does_not_hold_the_others_up(
    engine: Engine, tmp_path: Path
) -> None:
    first, second = ask_together(ids(40), ids(41))
    ear = Ear(engine)
    engine.control(load_of(write_tiny_gguf(tmp_path)))
    engine.submit(first)
    engine.submit(second)
    engine.abort(first.request_id)
    ends = [ear.wait_end(each.request_id) for each in (first, second)]
    assert [isinstance(end, Finished) and end.reason for end in ends] == [
        FinishReason.ABORTED,
        FinishReason.LENGTH,
    ]


# --- what is remembered


def member_of(number: int, *, size: int = 2) -> LiveRequest:
    """The first to come of a group of its own."""
    request = ask_together(ids(40))[0]
    group = RequestGroup(group_id=f"group {number}", size=size)
    return LiveRequest(replace(request, group=group), number, 0.0)


def test_groups_whose_members_are_gone_before_the_last_has_come_do_not_pile_up() -> None:
    groups = Groups()
    for number in range(10 * MOST_DESERTED):
        live = member_of(number)
        assert groups.join(live) is None
        assert groups.leave(live) == ()
    assert len(groups._gathering) == MOST_DESERTED


def test_a_group_of_which_somebody_waits_is_never_forgotten() -> None:
    groups = Groups()
    waits = member_of(0, size=3)
    groups.join(waits)
    for number in range(1, 10 * MOST_DESERTED):
        live = member_of(number)
        groups.join(live)
        groups.refuse(live, InvalidRequest("no"))
    groups.miss(waits.request)
    assert len(groups._gathering) == MOST_DESERTED + 1
    assert groups.refuse(waits, InvalidRequest("no")) == (waits,)


def test_a_group_of_which_nobody_is_to_come_any_more_is_forgotten() -> None:
    groups = Groups()
    first = member_of(0)
    groups.join(first)
    groups.miss(first.request)
    groups.leave(first)
    assert not groups._gathering
