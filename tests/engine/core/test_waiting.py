"""Deadlines of those who wait, what is told about them, and the order of the line as time goes by."""

from __future__ import annotations

import math

import pytest

from engine.api import FinishReason, Priority
from engine.core.config import ParkConfig, ResumeOrder
from engine.core.lines import Lines, Rank
from engine.core.parked import EndReason, Fate, ParkedState
from engine.core.types import SeqStatus, Sequence
from engine.core.victim_policies import VICTIM_POLICIES
from engine.runs import (
    Holder,
    ParkCause,
    ParkNow,
    ParkReason,
    Pin,
    ResumeNext,
    RunState,
    WaitKind,
    WaitReason,
)
from fakes.builders import copied, in_place, make_scheduler, make_sequence
from fakes.stepping import Bench


def bench_of(pages: int = 24, *, max_running: int = 4, park: ParkConfig | None = None) -> Bench:
    park = in_place(rotate_after_s=1e9) if park is None else park
    return Bench(make_scheduler(pages, page_tokens=4, max_running=max_running, park=park))


# --- deadlines


def test_one_that_waits_longer_than_it_would_ends_and_says_how_long_it_waited() -> None:
    bench = bench_of(max_running=1)
    bench.add(make_sequence(8, arrival=0, max_new=20))
    patient, impatient = (
        make_sequence(arrival=i, max_wait_s=wait_s) for i, wait_s in ((1, 60.0), (2, 5.0))
    )
    bench.add(patient, impatient)
    batch = bench.step_until(lambda batch: bool(batch.ended))
    (end,) = batch.ended
    assert (end.seq, end.reason) == (impatient, EndReason.WAITED_TOO_LONG)
    assert bench.now_s == end.waited_s == 5.0
    assert bench.run()["r1"] is FinishReason.LENGTH


def test_one_that_will_not_wait_is_let_in_where_there_is_room_and_ends_where_there_is_none() -> (
    None
):
    bench = bench_of(max_running=1)
    bench.add(make_sequence(8, arrival=0, max_new=20, max_wait_s=0.0))
    assert not bench.step()[0].ended
    bench.add(make_sequence(8, arrival=1, max_new=20, max_wait_s=0.0))
    assert [end.reason for end in bench.step()[0].ended] == []
    assert [end.reason for end in bench.step()[0].ended] == [EndReason.WAITED_TOO_LONG]
    assert bench.run()["r0"] is FinishReason.LENGTH


def test_queue_and_parks_count_together() -> None:
    bench = bench_of()
    seq = make_sequence(8, max_new=40, max_wait_s=10.0)
    bench.add(seq)
    bench.step()
    assert seq.waited_s(bench.now_s) == 1.0
    for _ in range(3):
        bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
        bench.steps(4)
        bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
        bench.step()
    assert bench.ends == {"r0": EndReason.WAITED_TOO_LONG}
    assert 10.0 <= seq.parked_s + 1.0 <= 11.0


def test_one_that_runs_is_not_ended_however_long() -> None:
    bench = bench_of()
    bench.add(make_sequence(8, max_new=40, max_wait_s=2.0))
    assert bench.run() == {"r0": FinishReason.LENGTH}


def test_an_end_while_parked_frees_what_was_kept() -> None:
    bench = bench_of(park=copied(rotate_after_s=1e9))
    bench.add(make_sequence(8, max_new=40, max_wait_s=5.0))
    bench.steps(2)
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    assert bench.scheduler.park_usage().used_bytes > 0
    bench.run()
    assert bench.ends == {"r0": EndReason.WAITED_TOO_LONG}
    assert bench.scheduler.park_usage().used_bytes == 0


def test_with_nothing_to_compute_the_batch_names_the_moment_of_the_next_deadline() -> None:
    bench = bench_of()
    bench.add(make_sequence(8, max_new=40, max_wait_s=7.0))
    bench.step()
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    batch, _ = bench.step()
    assert (batch.is_empty, batch.wake_s) == (True, 8.0)  # a second was spent in the queue


# --- explanations


def test_the_head_is_told_what_it_needs_what_is_spare_and_who_holds_most() -> None:
    bench = bench_of(12)
    old, large = (make_sequence(n, arrival=i, max_new=30) for i, n in ((0, 5), (1, 9)))
    waiting = make_sequence(16, arrival=2)
    bench.add(old, large, waiting)
    bench.step()
    assert bench.scheduler.explain().wait_reason(waiting) == WaitReason(
        kind=WaitKind.NO_ROOM,
        place=1,
        pages_needed=4 + 6,
        pages_spare=7,
        holders=(
            Holder(request_id="r1", held_tokens=10, pages=3),
            Holder(request_id="r0", held_tokens=6, pages=2),
        ),
    )


def test_those_behind_are_told_who_stands_before_them() -> None:
    bench = bench_of(max_running=1)
    bench.add(*(make_sequence(arrival=i) for i in range(4)))
    bench.step()
    third = bench.scheduler.live[3]
    reason = bench.scheduler.explain().wait_reason(third)
    assert reason is not None
    assert (reason.kind, reason.place) == (WaitKind.BEHIND_OTHERS, 3)
    assert reason.ahead_ids == ("r1", "r2")


@pytest.mark.parametrize(
    ("max_running", "step_tokens", "kind"),
    [(1, 64, WaitKind.NO_SEAT), (4, 4, WaitKind.NO_STEP_TOKENS)],
)
def test_seats_and_tokens_are_told_apart(
    max_running: int, step_tokens: int, kind: WaitKind
) -> None:
    scheduler = make_scheduler(40, max_running=max_running, step_tokens=step_tokens)
    bench = Bench(scheduler)
    bench.add(make_sequence(40, arrival=0), make_sequence(4, arrival=1))
    bench.step()
    reason = scheduler.explain().wait_reason(scheduler.live[1])
    assert reason is not None
    assert reason.kind is kind


def test_one_just_parked_has_its_place_at_once() -> None:
    bench = bench_of(10)
    sequences = [make_sequence(8, arrival=i, max_new=20) for i in range(2)]
    bench.add(*sequences)
    bench.step_until_parked()
    reason = bench.scheduler.explain().wait_reason(sequences[1])
    assert reason is not None
    assert (reason.kind, reason.place) == (WaitKind.NO_ROOM, 1)


def test_one_that_fits_but_would_be_parked_again_is_told_so() -> None:
    bench = bench_of(20)
    sequences = [make_sequence(8, arrival=i, max_new=40) for i in range(2)]
    bench.add(*sequences)
    bench.steps(2)
    bench.scheduler.steer(ParkNow(request_id="r1"), bench.now_s)
    bench.step()
    sequences[1].is_held = False
    bench.step()
    reason = bench.scheduler.explain().wait_reason(sequences[1])
    assert reason is not None
    assert reason.kind is WaitKind.WOULD_NOT_LAST
    assert reason.pages_needed > reason.pages_spare


def test_one_held_by_hand_stands_in_no_line() -> None:
    bench = bench_of()
    seq = make_sequence(8)
    bench.add(seq)
    bench.scheduler.steer(ParkNow(request_id="r0"), 0.0)
    reason = bench.scheduler.explain().wait_reason(seq)
    assert reason is not None
    assert (reason.kind, reason.place) == (WaitKind.HELD_BY_USER, 0)
    assert bench.scheduler.explain().outlook(seq) is None


def test_transfers_are_told_as_such() -> None:
    bench = Bench(make_scheduler(24, park=copied(is_async=True)), copy_steps=10**6)
    seq = make_sequence(8)
    bench.add(seq)
    bench.steps(2)
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    kinds = [bench.scheduler.explain().wait_reason(seq)]
    bench.land_all()
    seq.is_held = False
    bench.step()
    kinds.append(bench.scheduler.explain().wait_reason(seq))
    assert [reason and reason.kind for reason in kinds] == [
        WaitKind.BEING_SAVED,
        WaitKind.BEING_RESTORED,
    ]


def test_states_are_told_in_a_clients_terms() -> None:
    scheduler = make_scheduler(24, step_tokens=4, max_running=1, park=copied(is_async=True))
    bench = Bench(scheduler, copy_steps=10**6)
    seq = make_sequence(8)

    def state() -> RunState | None:
        return scheduler.explain().state(seq)

    bench.add(seq)
    seen = [state()]
    bench.step()
    seen.append(state())
    bench.steps(2)
    seen.append(state())
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.step()
    seen.append(state())
    bench.land_all()
    seen.append(state())
    scheduler.pool.purge()
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    bench.step()
    seen.append(state())
    bench.copy_steps = 1
    bench.run()
    seen.append(state())
    assert seen == [
        RunState.QUEUED,
        RunState.READING,
        RunState.WRITING,
        RunState.BEING_PARKED,
        RunState.PARKED,
        RunState.BEING_RESTORED,
        None,
    ]


def test_nothing_is_told_of_those_who_run_or_have_ended() -> None:
    bench = bench_of()
    seq = make_sequence(8, max_new=2)
    bench.add(seq)
    bench.step()
    assert bench.scheduler.explain().wait_reason(seq) is None
    bench.run()
    assert bench.scheduler.explain().wait_reason(seq) is None


def test_the_outlook_counts_what_is_lacking_and_how_long_the_others_go_on() -> None:
    bench = bench_of(12)
    first, second = (
        make_sequence(n, arrival=i, max_new=m) for i, n, m in ((0, 5, 10**6), (1, 9, 30))
    )
    waiting = [make_sequence(16, arrival=i) for i in (2, 3)]
    bench.add(first, second, *waiting)
    bench.step()
    outlook = bench.scheduler.explain().outlook(waiting[0])
    assert outlook is not None
    assert (outlook.pages_lacking, outlook.seats_lacking, outlook.ahead_tokens) == (3, 0, 0)
    assert [(one.pages, one.tokens_left) for one in outlook.residents] == [(2, 42), (3, 29)]
    behind = bench.scheduler.explain().outlook(waiting[1])
    assert behind is not None
    assert (behind.pages_lacking, behind.turns_s) == (3 + 10, 2 * outlook.turns_s)
    assert behind.ahead_tokens == waiting[0].max_new_tokens


def test_the_outlook_of_one_without_a_seat_is_not_that_it_enters_at_once() -> None:
    bench = bench_of(64, max_running=2, park=in_place())
    first, second, third = (make_sequence(5, arrival=i, max_new=20) for i in range(3))
    bench.add(first, second, third)
    bench.step()
    outlook = bench.scheduler.explain().outlook(third)
    assert outlook is not None
    assert (outlook.pages_lacking, outlook.seats_lacking, outlook.turns_s) == (0, 1, ())


def test_the_outlook_knows_when_the_room_is_owed_and_when_nobody_gives_way() -> None:
    bench = bench_of(12, park=in_place())
    old, new = (make_sequence(20, arrival=i, max_new=100) for i in (1, 2))
    bench.add(old, new)
    while new.parked is None:
        bench.step()
    bench.now_s += 0.5
    bench.step()
    outlook = bench.scheduler.explain().outlook(new)
    assert outlook is not None
    (turn_s,) = outlook.turns_s
    assert 0 < turn_s <= 1.5
    bench.scheduler.steer(Pin(request_id=old.request_id), bench.now_s)
    outlook = bench.scheduler.explain().outlook(new)
    assert outlook is not None
    assert outlook.turns_s == ()


def test_where_those_who_may_give_way_would_not_leave_room_enough_the_outlook_is_an_end() -> None:
    bench = bench_of(14, park=in_place())
    large, small, back = (
        make_sequence(n, arrival=i, max_new=100) for i, n in ((0, 32), (1, 8), (2, 24))
    )
    bench.add(large, small)
    bench.steps(2)
    bench.scheduler.adopt(back, bench.now_s)
    bench.step()
    outlook = bench.scheduler.explain().outlook(back)
    assert outlook is not None
    assert outlook.turns_s
    bench.scheduler.steer(Pin(request_id=large.request_id), bench.now_s)
    outlook = bench.scheduler.explain().outlook(back)
    assert outlook is not None
    assert outlook.turns_s == ()


# --- the order of the line


def rank(now_s: float, *, policy: str = "fcfs", order: ResumeOrder = ResumeOrder.HEAD) -> Rank:
    return Rank(now_s, 9, VICTIM_POLICIES[policy].resume_key, order, seatless_class=math.inf)


def parked(arrival: int, since_s: float, *, priority: Priority = Priority.NORMAL) -> Sequence:
    seq = make_sequence(arrival=arrival, priority=priority)
    seq.status = SeqStatus.PARKED
    reason = ParkReason(cause=ParkCause.PAGES_SHORT)
    seq.parked = ParkedState(since_s, 1, Fate.SWAP, reason, 5)
    return seq


def order_of(sequences: list[Sequence], rank: Rank) -> list[int]:
    lines = Lines()
    for seq in sequences:
        lines.add(seq)
    outside = lines.outside(rank)
    assert lines.head(rank) is (outside[0] if outside else None)
    return [seq.arrival for seq in outside]


def test_the_parked_come_before_those_who_wait_and_each_in_its_order() -> None:
    sequences = [make_sequence(arrival=1, arrival_s=9.0), parked(4, 9.0), parked(3, 9.5)]
    assert order_of(sequences, rank(10.0)) == [3, 4, 1]
    assert order_of(sequences, rank(10.0, policy="cost")) == [4, 3, 1]


def test_importance_comes_first() -> None:
    urgent = make_sequence(arrival=9, arrival_s=9.0, priority=Priority.INTERACTIVE)
    assert order_of([parked(1, 9.0), urgent], rank(10.0)) == [9, 1]


def test_thirty_seconds_are_worth_a_class_and_there_is_no_end_to_it() -> None:
    urgent = [parked(9, 100.0, priority=Priority.INTERACTIVE)]
    assert order_of([parked(1, 71.0), *urgent], rank(100.9)) == [9, 1]
    assert order_of([parked(1, 70.0), *urgent], rank(100.9)) == [1, 9]
    assert order_of([parked(1, 0.0, priority=Priority.BACKGROUND), *urgent], rank(100.9)) == [1, 9]


def test_two_seconds_more_of_waiting_come_before_the_policys_order() -> None:
    assert order_of([parked(1, 5.0), parked(2, 4.5)], rank(6.0)) == [1, 2]
    assert order_of([parked(1, 5.0), parked(2, 2.5)], rank(6.0)) == [2, 1]


def test_one_for_whom_room_is_being_made_comes_before_who_makes_it() -> None:
    waiting = make_sequence(arrival=9, arrival_s=5.0)
    assert order_of([parked(1, 5.0), waiting], rank(6.0)) == [1, 9]
    waiting = make_sequence(arrival=9, arrival_s=5.0)
    waiting.is_made_room_for = True
    assert order_of([parked(1, 5.0), waiting], rank(6.0)) == [9, 1]


def test_where_passing_is_allowed_those_parked_most_often_come_first() -> None:
    often, seldom = parked(2, 5.0), parked(1, 1.0)
    often.num_parks, seldom.num_parks = 4, 1
    assert order_of([often, seldom], rank(6.0, order=ResumeOrder.PASS)) == [2, 1]


def test_who_is_held_or_was_parked_in_this_step_or_is_to_be_tried_later_may_not_enter() -> None:
    held, fresh, later, free = (parked(i, 1.0) for i in range(4))
    held.is_held = True
    reason = ParkReason(cause=ParkCause.PAGES_SHORT)
    fresh.parked = ParkedState(1.0, 9, Fate.SWAP, reason, 5)
    later.parked = ParkedState(1.0, 1, Fate.SWAP, reason, 5, num_fails=1, retry_s=7.0)
    assert order_of([held, fresh, later, free], rank(6.0)) == [3]


@pytest.mark.parametrize(
    ("seatless_class", "order"), [(Priority.INTERACTIVE, [1, 9]), (Priority.NORMAL, [9, 1])]
)
def test_a_newcomer_without_a_seat_keeps_no_parked_one_waiting(
    seatless_class: Priority, order: list[int]
) -> None:
    urgent = make_sequence(arrival=9, arrival_s=9.0, priority=Priority.INTERACTIVE)
    key = VICTIM_POLICIES["fcfs"].resume_key
    full = Rank(10.0, 9, key, ResumeOrder.HEAD, seatless_class=seatless_class)
    assert order_of([parked(1, 9.0), urgent], full) == order


def test_of_many_who_wait_the_first_of_each_class_can_be_the_head() -> None:
    sequences = [make_sequence(arrival=i, priority=Priority(i % 3)) for i in range(30)]
    sequences[0].is_held = True
    order = order_of(sequences, rank(10.0))
    assert order[:3] == [3, 6, 9]
    assert order[-1] == 29
