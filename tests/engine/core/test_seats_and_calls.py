"""Whoever is called by hand goes in and keeps its room for a turn; seats go to those who matter more."""

from __future__ import annotations

import pytest

from engine.api import Priority
from engine.core.config import CALLED_S
from engine.core.types import SeqStatus, Sequence
from engine.runs import ParkNow, Pin, ResumeNext, SetPriority
from fakes.builders import copied, in_place, make_scheduler, make_sequence
from fakes.rotation_bench import bench_of, endless
from fakes.stepping import Bench


def test_a_call_by_hand_sends_somebody_out_at_once() -> None:
    bench = bench_of(8)
    first, second = endless(1), endless(2)
    bench.add(first)
    bench.step()
    second.arrival_s = bench.now_s
    bench.add(second)
    bench.steps(3)
    assert second.status is SeqStatus.WAITING
    bench.scheduler.steer(ResumeNext(request_id="r2"), bench.now_s)
    batch, _ = bench.step()
    assert batch.started == (second,)
    assert batch.parked == (first,)


def kept_s(bench: Bench, seq: Sequence) -> float:
    """Call one outside by hand; the seconds from its entrance until it is parked again."""
    bench.scheduler.steer(ResumeNext(request_id=seq.request_id), bench.now_s)
    bench.step_until(lambda batch: seq in (*batch.started, *batch.restored))
    entered_s = bench.now_s
    bench.step_until(lambda batch: seq in batch.parked)
    return bench.now_s - entered_s


def test_one_called_by_hand_keeps_its_room_for_a_long_turn_though_others_are_owed_theirs() -> None:
    """On a slow machine the guard of those who come back is over after a few tokens."""
    bench = bench_of(8, step_s=0.5)
    chats = [endless(i) for i in range(3)]
    bench.add(*chats)
    bench.steps(100)
    second = bench.scheduler.explain()
    called = next(seq for seq in chats if second.place(seq) == 2)
    assert kept_s(bench, called) >= CALLED_S


def test_one_called_when_it_has_just_come_back_keeps_its_room_from_then_on() -> None:
    """Whoever calls one that waits may be a moment late: the call holds all the same."""
    bench = bench_of(8, step_s=0.5)
    chats = [endless(i) for i in range(3)]
    bench.add(*chats)
    bench.steps(100)
    back = bench.step_until(lambda batch: bool(batch.restored)).restored[0]
    assert bench.scheduler.steer(ResumeNext(request_id=back.request_id), bench.now_s)
    called_s = bench.now_s
    bench.step_until(lambda batch: back in batch.parked)
    assert bench.now_s - called_s >= CALLED_S
    bench.step_until(lambda batch: back in batch.restored)
    again_s = bench.now_s
    bench.step_until(lambda batch: back in batch.parked)
    assert bench.now_s - again_s < CALLED_S, "once"


def test_the_others_are_told_that_they_wait_for_the_turn_of_who_was_called() -> None:
    bench = bench_of(8, step_s=0.5)
    chats = [endless(i) for i in range(3)]
    bench.add(*chats)
    bench.steps(100)
    explain = bench.scheduler.explain()
    called = next(seq for seq in chats if explain.place(seq) == 2)
    bench.scheduler.steer(ResumeNext(request_id=called.request_id), bench.now_s)
    bench.step_until(lambda batch: called in batch.restored)
    explain = bench.scheduler.explain()
    head = next(seq for seq in chats if explain.place(seq) == 1)
    outlook = explain.outlook(head)
    assert outlook is not None
    assert outlook.turns_s == (CALLED_S,)


def test_one_called_by_hand_is_not_who_leaves_when_pages_run_short() -> None:
    """The newest would have to go, though it has only just been called."""
    bench = bench_of(24, park=in_place(rotate_after_s=1e9), step_s=0.05)
    chats = [make_sequence(24, arrival=i, max_new=300, keep_tokens=2) for i in range(3)]
    bench.add(*chats)
    assert bench.step_until_parked().parked == (chats[2],)
    bench.scheduler.steer(ResumeNext(request_id="r2"), bench.now_s)
    bench.step_until(lambda batch: chats[2] in batch.restored)
    assert bench.step_until_parked().parked != (chats[2],)


def test_who_is_called_later_need_not_wait_for_the_turn_of_who_was_called_before() -> None:
    bench = bench_of(8, step_s=0.5)
    first, second, third = chats = [endless(i) for i in range(3)]
    bench.add(*chats)
    bench.steps(10)
    for seq in (second, third):
        bench.scheduler.steer(ResumeNext(request_id=seq.request_id), bench.now_s)
        bench.step_until(lambda batch, seq=seq: seq in (*batch.started, *batch.restored))
    called_s = bench.now_s
    bench.scheduler.steer(ResumeNext(request_id=first.request_id), bench.now_s)
    bench.step_until(lambda batch: first in batch.restored)
    assert bench.now_s - called_s < CALLED_S


def test_room_made_for_one_is_not_given_to_another_whose_rank_is_raised_meanwhile() -> None:
    """While the resident is still being copied out, somebody who came earlier moves into the class of the head."""
    bench = bench_of(8, park=copied(is_async=True))
    resident, early, head = endless(1), endless(2, priority=Priority.BACKGROUND), endless(3)
    bench.add(resident)
    bench.step()
    early.arrival_s = head.arrival_s = bench.now_s
    bench.add(early, head)
    assert bench.step_until_parked().parked == (resident,)
    bench.scheduler.steer(SetPriority(request_id="r2", priority=Priority.NORMAL), bench.now_s)
    batch = bench.step_until(lambda batch: bool(batch.started or batch.restored))
    assert batch.started == (head,)


def test_a_head_that_lacks_a_seat_gets_one() -> None:
    """All seats are taken because somebody was parked by hand and called back later."""
    scheduler = make_scheduler(40, page_tokens=4, max_running=2, park=in_place())
    bench = Bench(scheduler, step_s=0.1)
    chats = [endless(i) for i in range(3)]
    bench.add(*chats)
    bench.steps(2)
    bench.scheduler.steer(ParkNow(request_id="r0"), bench.now_s)
    bench.steps(3)
    assert chats[2].status is SeqStatus.RUNNING
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    bench.step()
    assert chats[0].status is SeqStatus.RUNNING
    assert bench.scheduler.num_running == 2


def full_of(priority: Priority, *, seats: int = 2) -> tuple[Bench, list[Sequence]]:
    """Chats without an end on all seats, in a pool with room for more."""
    scheduler = make_scheduler(64, page_tokens=4, park=in_place(), max_running=seats)
    bench = Bench(scheduler, step_s=0.1)
    residents = [endless(i, priority=priority) for i in range(seats)]
    bench.add(*residents)
    bench.steps(3)
    return bench, residents


def test_who_matters_more_gets_the_seat_of_one_who_matters_less_who_has_it_back_afterwards() -> (
    None
):
    bench, residents = full_of(Priority.BACKGROUND)
    chat = make_sequence(8, arrival=9, max_new=20, priority=Priority.INTERACTIVE)
    added_s = chat.arrival_s = bench.now_s
    bench.add(chat)
    outlook = bench.scheduler.explain().outlook(chat)
    assert outlook is not None
    assert outlook.turns_s == pytest.approx((2.0,), abs=0.2)
    batch = bench.step_until(lambda batch: chat in batch.started)
    assert bench.now_s - added_s == pytest.approx(2.0, abs=0.2)
    assert [seq.parked is not None for seq in residents].count(True) == 1
    gone = next(seq for seq in residents if seq.parked is not None)
    assert batch.parked in ((gone,), ())
    bench.step_until(lambda batch: gone in batch.restored)
    assert chat.has_ended
    assert all(seq.status is SeqStatus.RUNNING for seq in residents)


@pytest.mark.parametrize("priority", [Priority.INTERACTIVE, Priority.NORMAL])
def test_who_matters_no_more_waits_for_a_seat(priority: Priority) -> None:
    bench, residents = full_of(priority)
    late = make_sequence(8, arrival=9, max_new=4)
    late.arrival_s = bench.now_s
    bench.add(late)
    outlook = bench.scheduler.explain().outlook(late)
    assert outlook is not None
    assert outlook.turns_s == ()
    bench.steps(60)
    assert late.status is SeqStatus.WAITING
    assert all(seq.num_parks == 0 for seq in residents)


def test_a_parked_one_that_matters_less_has_no_seat_kept_against_a_newcomer() -> None:
    bench, residents = full_of(Priority.BACKGROUND)
    chats = [
        make_sequence(
            8, arrival=10 + i, max_new=10**6, keep_tokens=2, priority=Priority.INTERACTIVE
        )
        for i in range(2)
    ]
    for chat in chats:
        chat.arrival_s = bench.now_s
        bench.add(chat)
    bench.step_until(lambda batch: chats[-1].status is SeqStatus.RUNNING)
    assert all(seq.status is SeqStatus.PARKED for seq in residents)


def test_a_pinned_one_keeps_its_seat_whoever_comes() -> None:
    bench, residents = full_of(Priority.BACKGROUND, seats=1)
    bench.scheduler.steer(Pin(request_id=residents[0].request_id), bench.now_s)
    chat = make_sequence(8, arrival=9, max_new=4, priority=Priority.INTERACTIVE)
    chat.arrival_s = bench.now_s
    bench.add(chat)
    bench.steps(100)
    assert chat.status is SeqStatus.WAITING
    assert residents[0].num_parks == 0
