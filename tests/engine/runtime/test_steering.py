"""People at the wheel of the real engine: park, call, pin, rank; and requests that end while out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.api import (
    EngineEvent,
    Failed,
    Finished,
    FinishReason,
    Parked,
    Priority,
    RequestGroup,
    Restored,
    Started,
    TokenDelta,
)
from engine.core.parked import CopyWay
from engine.errors import InvalidRequest, WaitedTooLong
from engine.runs import (
    ParkCause,
    ParkNow,
    Pin,
    ResumeNext,
    Run,
    RunState,
    SetParkBudget,
    SetPriority,
    SetVictimPolicy,
    WaitKind,
)
from engine.runtime.copies import Finish
from engine.runtime.engine import Engine
from engine.runtime.host_copies import HostCopies
from fakes.listening import TIMEOUT_S, Ear, held, run_all, submit_together, submitted_until
from fakes.parking_rig import (
    ask,
    assert_nothing_is_held,
    four,
    load,
    parks_of,
    settled,
    tokens_alone,
)

CYCLES = [100, pytest.param(1000, marks=[pytest.mark.full, pytest.mark.timeout(1200)])]
"""How often in a row somebody gives up; the whole of the check is a thousand times."""


def run_of(engine: Engine, request_id: str) -> Run:
    return next(run for run in engine.snapshot().runs if run.request_id == request_id)


@contextmanager
def subscribed(engine: Engine, hear: Callable[[EngineEvent], object]) -> Iterator[None]:
    """Call `hear` on the engine thread with every event."""

    def hear_all(events: tuple[EngineEvent, ...]) -> None:
        for event in events:
            hear(event)

    stop = engine.subscribe(hear_all)
    try:
        yield
    finally:
        stop()


def token_of(request_id: str) -> Callable[[EngineEvent], bool]:
    return lambda event: isinstance(event, TokenDelta) and event.request_id == request_id


def first_park(ear: Ear, request_id: str) -> Parked:
    event = ear.wait_for(lambda e: isinstance(e, Parked) and e.request_id == request_id)
    assert isinstance(event, Parked)
    return event


def test_a_request_parked_by_hand_stays_out_until_it_is_called_back(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, pool_tokens=1024)
    alone = tokens_alone(engine, four())
    ear = Ear(engine)
    with submitted_until(engine, [ask("r0")], token_of("r0")):
        engine.control(ParkNow(request_id="r0"))
    park = first_park(ear, "r0")
    assert (park.reason.cause, park.place) == (ParkCause.BY_USER, 0)
    run_all(engine, four()[1:])
    run = run_of(engine, "r0")
    assert run.state is RunState.PARKED
    assert run.wait is not None
    assert run.wait.kind is WaitKind.HELD_BY_USER
    assert run.expected_wait_s is None
    engine.control(ResumeNext(request_id="r0"))
    assert isinstance(ear.wait_end("r0"), Finished)
    assert ear.tokens("r0") == alone["r0"]
    assert_nothing_is_held(engine)


def test_a_request_can_be_held_before_it_has_begun(engine: Engine, model_path: Path) -> None:
    load(engine, model_path)
    ear = Ear(engine)
    with held(engine):
        engine.submit(ask("r0"))
        engine.control(ParkNow(request_id="r0"))
        engine.control(Pin(request_id="r0"))
    settled(engine)
    run = run_of(engine, "r0")
    assert run.state is RunState.QUEUED
    assert run.is_pinned
    assert run.wait is not None
    assert run.wait.kind is WaitKind.HELD_BY_USER
    assert not ear.of("r0")
    engine.control(ResumeNext(request_id="r0"))
    assert isinstance(ear.wait_end("r0"), Finished)


def test_one_of_a_group_can_be_held_before_the_others_have_come(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path)
    group = RequestGroup(group_id="pair", size=2)
    ear = Ear(engine)
    engine.submit(ask("one", group=group))
    settled(engine)
    engine.control(ParkNow(request_id="one"))
    engine.submit(ask("two", group=group))
    assert isinstance(ear.wait_end("two"), Finished)
    assert not ear.of("one")
    engine.control(ResumeNext(request_id="one"))
    assert isinstance(ear.wait_end("one"), Finished)


def test_whoever_is_called_goes_before_those_who_wait(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, parallel=1)
    ear = Ear(engine)
    with submitted_until(engine, four(), token_of("r0")):
        engine.control(ResumeNext(request_id="r3"))
    for n in range(4):
        assert isinstance(ear.wait_end(f"r{n}"), Finished)
    starts = [event.request_id for event in ear.events if isinstance(event, Started)]
    assert starts == ["r0", "r3", "r1", "r2"]


def test_a_pinned_request_is_parked_after_all_others(engine: Engine, model_path: Path) -> None:
    load(engine, model_path)
    ear = Ear(engine)
    with submitted_until(engine, four()[:3], token_of("r2")):
        engine.control(Pin(request_id="r2"))
    for n in range(3):
        assert isinstance(ear.wait_end(f"r{n}"), Finished)
    assert parks_of(ear, "r1")
    assert not parks_of(ear, "r2")


def test_whoever_matters_less_is_parked_first(engine: Engine, model_path: Path) -> None:
    load(engine, model_path)
    ear = Ear(engine)
    listed: list[Priority] = []

    def look(event: EngineEvent) -> None:
        listed.extend(run.priority for run in engine.snapshot().runs if run.request_id == "r0")

    with subscribed(engine, look):
        with submitted_until(engine, four()[:3], token_of("r2")):
            engine.control(SetPriority(request_id="r0", priority=Priority.BACKGROUND))
        for n in range(3):
            assert isinstance(ear.wait_end(f"r{n}"), Finished)
    assert Priority.BACKGROUND in listed
    parked = [event.request_id for event in ear.events if isinstance(event, Parked)]
    assert parked[0] == "r0"


def test_policy_and_budget_change_while_requests_run(engine: Engine, model_path: Path) -> None:
    load(engine, model_path)
    ear = Ear(engine)
    with submitted_until(engine, four(), token_of("r0")):
        engine.control(SetVictimPolicy(name="largest"))
        engine.control(SetParkBudget(budget_bytes=3 << 20))
    for n in range(4):
        assert isinstance(ear.wait_end(f"r{n}"), Finished)
    snapshot = settled(engine)
    assert snapshot.options is not None
    assert (snapshot.options.preempt_policy, snapshot.options.preempt_ram_mib) == ("largest", 3)
    assert snapshot.parks.budget_bytes == 3 << 20
    assert_nothing_is_held(engine)


def test_what_cannot_be_is_refused_where_it_is_said() -> None:
    with pytest.raises(InvalidRequest, match=r"'nicest'.*fcfs, cost"):
        SetVictimPolicy(name="nicest")
    with pytest.raises(InvalidRequest, match="budget_bytes is -2"):
        SetParkBudget(budget_bytes=-2)


def test_steering_of_nobody_harms_nobody(engine: Engine, model_path: Path) -> None:
    engine.control(ParkNow(request_id="before any model"))
    load(engine, model_path)
    engine.control(ParkNow(request_id="nobody"))
    engine.control(SetPriority(request_id="nobody", priority=Priority.INTERACTIVE))
    assert_nothing_is_held(engine)


@pytest.mark.parametrize("options", [{}, {"test_preempt_copy": True}], ids=["in place", "copied"])
def test_whoever_has_waited_as_long_as_he_would_is_told_so(
    engine: Engine, model_path: Path, options: dict[str, object]
) -> None:
    load(engine, model_path, **options)
    ear = Ear(engine)
    with submitted_until(engine, [ask("held", max_wait_s=0.2)], token_of("held")):
        engine.control(ParkNow(request_id="held"))
    end = ear.wait_end("held")
    assert isinstance(end, Failed)
    assert isinstance(end.error, WaitedTooLong)
    assert 1.0 <= end.error.retry_after_s < TIMEOUT_S
    assert end.partial
    assert_nothing_is_held(engine)


def test_one_who_never_got_in_waits_no_longer_either(engine: Engine, model_path: Path) -> None:
    load(engine, model_path, parallel=1)
    ear = Ear(engine)
    submit_together(engine, [ask("first", max_tokens=150), ask("impatient", max_wait_s=0.0)])
    end = ear.wait_end("impatient")
    assert isinstance(end, Failed)
    assert isinstance(end.error, WaitedTooLong)
    assert not end.partial
    assert isinstance(ear.wait_end("first"), Finished)


# --- ends while out


@pytest.mark.parametrize("cycles", CYCLES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"test_preempt_copy": True, "preempt_async": False},
        {"test_preempt_copy": True},
    ],
    ids=["in place", "copied", "copied beside the steps"],
)
def test_a_request_given_up_while_parked_leaves_nothing_behind(
    engine: Engine, model_path: Path, options: dict[str, object], cycles: int
) -> None:
    load(engine, model_path, test_preempt_every=4, **options)
    for _ in range(cycles):
        with subscribed(engine, lambda e: engine.abort("r3") if isinstance(e, Parked) else None):
            end = run_all(engine, [ask("r3")]).wait_end("r3")
        assert isinstance(end, Finished)
        assert (end.reason, end.usage.num_parks) == (FinishReason.ABORTED, 1)
        assert_nothing_is_held(engine)


@pytest.mark.parametrize("cycles", CYCLES)
@pytest.mark.parametrize("way", CopyWay)
def test_a_request_given_up_while_it_is_copied_leaves_nothing_behind(
    engine: Engine, model_path: Path, monkeypatch: pytest.MonkeyPatch, way: CopyWay, cycles: int
) -> None:
    gate = threading.Event()
    start = HostCopies.start

    def start_slowly(self: HostCopies, one: CopyWay, *of: Any, is_beside: bool) -> Finish:
        finish = start(self, one, *of, is_beside=is_beside)

        def finish_at_leisure() -> None:
            engine.abort("r3")
            assert gate.wait(TIMEOUT_S)
            finish()

        return finish_at_leisure if one is way else finish

    monkeypatch.setattr(HostCopies, "start", start_slowly)
    load(engine, model_path, test_preempt_every=4, test_preempt_copy=True)
    for _ in range(cycles):
        gate.clear()
        end = run_all(engine, [ask("r3")]).wait_end("r3")
        snapshot = engine.snapshot()
        held = snapshot.pool.total_pages - snapshot.pool.free_pages - snapshot.pool.reusable_pages
        assert held, "the copy still uses its pages"
        gate.set()
        assert isinstance(end, Finished)
        assert end.reason is FinishReason.ABORTED
        assert_nothing_is_held(engine)


def test_a_model_unloaded_amid_copies_leaves_no_thread_and_the_next_one_works(
    engine: Engine, model_path: Path
) -> None:
    for _ in range(5):
        load(engine, model_path, test_preempt_copy=True, test_preempt_every=2)
        ear = Ear(engine)
        submit_together(engine, four())
        ear.wait_for(lambda e: isinstance(e, Restored))
    load(engine, model_path)
    assert isinstance(run_all(engine, [ask("after")]).wait_end("after"), Finished)
    assert_nothing_is_held(engine)


def test_everybody_in_flight_is_listed_with_what_he_waits_for(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, parallel=3, batch_tokens=16)
    lists: list[tuple[Run, ...]] = []
    with subscribed(engine, lambda event: lists.append(engine.snapshot().runs)):
        run_all(engine, four())
    seen = {run.state for runs in lists for run in runs}
    assert seen >= {RunState.QUEUED, RunState.READING, RunState.WRITING, RunState.PARKED}
    waits = [run for runs in lists for run in runs if run.wait is not None]
    assert all(run.state not in (RunState.READING, RunState.WRITING) for run in waits)
    parked = [run for run in waits if run.state is RunState.PARKED and run.wait is not None]
    assert {run.wait.kind for run in parked} >= {WaitKind.NO_ROOM}
    assert any(run.expected_wait_s is not None for run in parked)
    assert all(run.held_tokens >= run.prompt_tokens > 0 for run in parked)
    writing = [run for runs in lists for run in runs if run.state is RunState.WRITING]
    assert {run.held_tokens - run.computed_tokens for run in writing} == {1}
    reading = [run for runs in lists for run in runs if run.state is RunState.READING]
    assert all(0 <= run.computed_tokens < run.held_tokens for run in reading)
    assert any(run.computed_tokens for run in reading), "in parts of 16 tokens"
    assert lists[-1] == ()
