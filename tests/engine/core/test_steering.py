"""What people change while everything runs: it takes effect at the next step, and changes no reply."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from engine.api import FinishReason, Priority
from engine.core.config import ParkConfig
from engine.core.types import SeqStatus, Sequence
from engine.errors import InvalidRequest
from engine.runs import (
    ParkCause,
    ParkNow,
    Pin,
    ResumeNext,
    SetParkBudget,
    SetPriority,
    SetVictimPolicy,
    SteeringCommand,
)
from fakes.builders import in_place, make_scheduler, make_sequence
from fakes.stepping import Bench, assert_undisturbed


def bench_of(pages: int = 24, *, park: ParkConfig | None = None) -> Bench:
    park = in_place(rotate_after_s=1e9) if park is None else park
    return Bench(make_scheduler(pages, page_tokens=4, park=park))


def steer(bench: Bench, command: SteeringCommand) -> bool:
    return bench.scheduler.steer(command, bench.now_s)


def running(bench: Bench, count: int, *, max_new: int = 20) -> list[Sequence]:
    sequences = [make_sequence(8, arrival=i, max_new=max_new) for i in range(count)]
    bench.add(*sequences)
    bench.steps(2)
    return sequences


# --- park and resume


def test_one_parked_by_hand_leaves_with_the_next_step_and_stays_out_until_it_is_resumed() -> None:
    bench = bench_of()
    first, second = running(bench, 2)
    assert steer(bench, ParkNow(request_id="r1"))
    assert second.status is SeqStatus.RUNNING
    batch, _ = bench.step()
    assert batch.parked == (second,)
    assert second.parked is not None
    assert second.parked.reason.cause is ParkCause.BY_USER
    bench.steps(30)
    assert first.has_ended
    assert second.status is SeqStatus.PARKED
    assert steer(bench, ResumeNext(request_id="r1"))
    batch, _ = bench.step()
    assert batch.restored == (second,)
    bench.run()
    assert_undisturbed(first, second)


def test_while_all_are_held_the_step_is_empty_and_waits_for_a_command() -> None:
    bench = bench_of()
    running(bench, 1)
    steer(bench, ParkNow(request_id="r0"))
    batch, _ = bench.step()
    assert (batch.is_empty, batch.wake_s) == (True, bench.now_s)  # it made room: look again
    batch, _ = bench.step()
    assert batch.is_empty
    assert (batch.awaits_copies, batch.wake_s) == (False, None)
    assert not bench.scheduler.is_idle


def test_one_held_by_hand_keeps_nobody_from_entering() -> None:
    bench = Bench(make_scheduler(24, page_tokens=4, max_running=1, park=in_place()))
    running(bench, 1)
    steer(bench, ParkNow(request_id="r0"))
    bench.step()
    newcomer = make_sequence(4, arrival=5, max_new=2)
    bench.add(newcomer)
    batch, _ = bench.step()
    assert batch.started == (newcomer,)


def test_one_that_waits_can_be_held_too_and_does_not_start() -> None:
    bench = bench_of()
    seq = make_sequence(8)
    bench.add(seq)
    steer(bench, ParkNow(request_id="r0"))
    bench.steps(3)
    assert seq.status is SeqStatus.WAITING
    steer(bench, ResumeNext(request_id="r0"))
    assert bench.run() == {"r0": FinishReason.LENGTH}


def test_a_park_by_hand_can_be_taken_back_before_it_happens() -> None:
    bench = bench_of()
    (seq,) = running(bench, 1)
    steer(bench, ParkNow(request_id="r0"))
    steer(bench, ResumeNext(request_id="r0"))
    bench.step()
    assert (seq.status, seq.num_parks) == (SeqStatus.RUNNING, 0)


def test_one_parked_for_room_can_be_held_as_well() -> None:
    bench = bench_of(10)
    sequences = running(bench, 2)
    bench.step_until_parked()
    steer(bench, ParkNow(request_id="r1"))
    bench.steps(30)
    assert sequences[0].has_ended
    assert sequences[1].status is SeqStatus.PARKED


def test_one_that_is_only_let_go_keeps_its_place_in_line() -> None:
    bench = Bench(make_scheduler(40, page_tokens=4, max_running=1))
    running(bench, 1)
    waiting = [make_sequence(arrival=i) for i in range(5, 8)]
    bench.add(*waiting)
    steer(bench, ParkNow(request_id="r6"))
    bench.steps(2)
    assert steer(bench, ResumeNext(request_id="r6", goes_first=False))
    assert steer(bench, ResumeNext(request_id="r7", goes_first=False))
    assert [bench.scheduler.explain().place(seq) for seq in waiting] == [1, 2, 3]
    assert list(bench.run()) == ["r0", "r5", "r6", "r7"]


def test_the_latest_call_is_the_next_to_enter() -> None:
    bench = Bench(make_scheduler(40, page_tokens=4, max_running=1))
    running(bench, 1)
    waiting = [make_sequence(arrival=i) for i in range(5, 9)]
    bench.add(*waiting)
    steer(bench, ResumeNext(request_id="r7"))
    steer(bench, ResumeNext(request_id="r8"))
    explain = bench.scheduler.explain()
    assert [explain.place(seq) for seq in waiting] == [3, 4, 2, 1]
    assert list(bench.run()) == ["r0", "r8", "r7", "r5", "r6"]


def test_with_parking_off_nobody_can_be_parked_by_hand() -> None:
    bench = bench_of(park=ParkConfig(budget_bytes=0))
    (seq,) = running(bench, 1)
    assert not steer(bench, ParkNow(request_id="r0"))
    bench.step()
    assert seq.status is SeqStatus.RUNNING


# --- pins, priorities, policy, budget


def test_a_pinned_sequence_is_parked_only_when_nobody_else_is_left() -> None:
    bench = bench_of(12)
    sequences = running(bench, 2, max_new=30)
    steer(bench, Pin(request_id="r1"))
    assert bench.step_until_parked().parked == (sequences[0],)
    steer(bench, Pin(request_id="r1", is_pinned=False))
    bench.run()
    assert_undisturbed(*sequences)


def test_a_priority_changes_who_leaves_and_who_is_next() -> None:
    bench = bench_of(12)
    sequences = running(bench, 2, max_new=30)
    steer(bench, SetPriority(request_id="r1", priority=Priority.INTERACTIVE))
    assert bench.scheduler.line(SeqStatus.RUNNING) == (sequences[1], sequences[0])
    assert bench.step_until_parked().parked == (sequences[0],)
    bench.scheduler.check()


def test_a_priority_moves_one_that_waits() -> None:
    bench = Bench(make_scheduler(40, page_tokens=4, max_running=1))
    running(bench, 1)
    bench.add(*(make_sequence(arrival=i) for i in (5, 6)))
    steer(bench, SetPriority(request_id="r6", priority=Priority.INTERACTIVE))
    assert list(bench.run()) == ["r0", "r6", "r5"]


@pytest.mark.parametrize(("policy", "victim"), [("fcfs", 2), ("smallest", 1), ("largest", 2)])
def test_a_policy_holds_from_the_next_park_on(policy: str, victim: int) -> None:
    bench = bench_of(18)
    sequences = [make_sequence(n, arrival=i, max_new=30) for i, n in enumerate((8, 4, 12))]
    bench.add(*sequences)
    bench.step()
    assert steer(bench, SetVictimPolicy(name=policy))
    assert bench.step_until_parked().parked == (sequences[victim],)
    bench.run()
    assert_undisturbed(*sequences)


def test_parking_can_be_switched_off_and_on_while_all_runs() -> None:
    bench = bench_of(12)
    sequences = running(bench, 2, max_new=30)
    steer(bench, SetParkBudget(budget_bytes=0))
    assert bench.scheduler.park_usage().budget_bytes == 0
    steer(bench, SetParkBudget(budget_bytes=64))
    bench.step_until_parked()
    bench.run()
    assert_undisturbed(*sequences)


# --- what cannot be


@pytest.mark.parametrize(
    "command",
    [
        ParkNow(request_id="x"),
        ResumeNext(request_id="x"),
        Pin(request_id="x"),
        SetPriority(request_id="x", priority=Priority.NORMAL),
    ],
)
def test_a_command_for_nobody_alive_changes_nothing(command: SteeringCommand) -> None:
    assert not steer(bench_of(), command)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (partial(SetVictimPolicy, name="dice"), "name is 'dice', allowed is one of fcfs, cost"),
        (partial(SetParkBudget, budget_bytes=-2), "budget_bytes is -2"),
    ],
)
def test_a_value_that_cannot_be_is_refused(
    command: Callable[[], SteeringCommand], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        command()


@pytest.mark.parametrize("give", [ParkNow, ResumeNext])
def test_commands_can_be_given_again_and_again(give: Callable[..., SteeringCommand]) -> None:
    bench = bench_of()
    (seq,) = running(bench, 1)
    for _ in range(3):
        assert steer(bench, give(request_id="r0"))
    bench.step()
    steer(bench, ResumeNext(request_id="r0"))
    bench.run()
    assert_undisturbed(seq)
