"""Parks that copy pages to host buffers: orders, states, buffers, failures, and cancels at every moment."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.config import Knobs, ParkConfig
from engine.core.host_pool import ROUNDING_BYTES
from engine.core.parked import CopyWay, EndReason, Fate, PageCopy
from engine.core.types import SeqStatus, Sequence, StepBatch
from engine.runs import ParkNow, ResumeNext, SetParkBudget
from fakes.builders import copied, in_place, make_scheduler, make_sequence
from fakes.stepping import Bench, assert_undisturbed

PAGE = ROUNDING_BYTES


def bench_of(park: ParkConfig, *, pages: int = 24, copy_steps: int = 3) -> Bench:
    """A pool of pages of four tokens in which nobody is rotated."""
    park = replace(park, rotate_after_s=1e9)
    return Bench(make_scheduler(pages=pages, page_tokens=4, park=park), copy_steps=copy_steps)


def two(bench: Bench, *, max_new: int = 30) -> tuple[Sequence, Sequence]:
    """Two sequences in the pool, past their prompts."""
    old, new = (make_sequence(8, arrival=i, max_new=max_new) for i in (1, 2))
    bench.add(old, new)
    bench.steps(2)
    return old, new


def park(bench: Bench, seq: Sequence) -> StepBatch:
    """Park it by hand; the batch that does so, its step done."""
    bench.scheduler.steer(ParkNow(request_id=seq.request_id), bench.now_s)
    return bench.step()[0]


def resume(bench: Bench, seq: Sequence) -> StepBatch:
    bench.scheduler.steer(ResumeNext(request_id=seq.request_id), bench.now_s)
    return bench.step()[0]


def only_copy(batch: StepBatch) -> PageCopy:
    (order,) = batch.copies
    return order


# --- in step


def test_a_park_orders_one_copy_of_all_its_pages_and_frees_them_for_the_same_step() -> None:
    bench = bench_of(copied())
    _, new = two(bench)
    table = tuple(new.page_table)
    order = only_copy(park(bench, new))
    assert (order.way, order.request_ids, order.must_land) == (CopyWay.OUT, ("r2",), True)
    assert order.pages == table
    assert [one.slot for one in order.saved] == list(range(len(table)))
    assert order.capacity_bytes >= len(table) * PAGE
    assert (new.status, new.page_table, new.num_computed) == (SeqStatus.PARKED, [], 9)
    assert bench.scheduler.pool.num_usable == 24 - 3


def test_a_restore_orders_the_copy_back_and_the_sequence_runs_in_the_same_step() -> None:
    bench = bench_of(copied())
    old, new = two(bench)
    saved = only_copy(park(bench, new)).saved
    bench.scheduler.pool.purge()  # what it left in the pool is forgotten
    batch = resume(bench, new)
    order = only_copy(batch)
    assert (order.way, order.saved) == (CopyWay.IN, saved)
    assert order.pages == tuple(new.page_table)
    assert batch.restored == (new,)
    assert new in [row.seq for row in batch.rows]
    bench.run()
    assert_undisturbed(old, new)


def test_what_the_pool_still_has_is_not_copied_back() -> None:
    bench = bench_of(copied())
    _, new = two(bench)
    park(bench, new)
    order = only_copy(resume(bench, new))
    assert order.way is CopyWay.IN
    assert [one.slot for one in order.saved] == [2]  # two full pages were found again
    bench.run()
    assert_undisturbed(new)


def test_pages_that_others_use_are_neither_copied_nor_freed() -> None:
    bench = bench_of(copied())
    first = make_sequence(range(12), arrival=1, max_new=28)
    second = make_sequence([*range(8), 99, 98, 97, 96], arrival=2, max_new=28)
    bench.add(first)
    bench.step()
    bench.add(second)
    bench.step()
    order = only_copy(park(bench, second))
    assert len(order.pages) == 1
    assert second.page_table == first.page_table[:2]
    resume(bench, second)
    bench.run()
    assert_undisturbed(first, second)


def test_pages_left_behind_are_copied_after_the_others_when_their_room_is_needed() -> None:
    bench = bench_of(copied(), pages=12)
    first = make_sequence(range(12), arrival=1, max_new=28)
    second = make_sequence([*range(8), 99, 98, 97, 96], arrival=2, max_new=28)
    bench.add(first)
    bench.step()
    bench.add(second)
    bench.step()
    park(bench, second)
    bench.scheduler.abort("r1", bench.now_s)
    assert bench.scheduler.pool.num_stranded == 2
    large = make_sequence(range(100, 146), arrival=3, max_new=1)
    bench.add(large)
    order = only_copy(bench.step()[0])
    assert (order.way, order.request_ids, len(order.pages)) == (CopyWay.OUT, ("r2",), 2)
    assert order.must_land
    assert (second.page_table, bench.scheduler.pool.num_stranded) == ([], 0)
    back = only_copy(resume(bench, second))
    assert {one.buffer_id for one in back.saved} == {1, 2}
    bench.run()
    assert second.num_recomputes == 0
    assert_undisturbed(second, large)


def test_pages_left_behind_that_the_budget_does_not_hold_are_given_up_with_the_state() -> None:
    bench = bench_of(copied(1), pages=12)
    first = make_sequence(range(12), arrival=1, max_new=28)
    second = make_sequence([*range(8), 99, 98, 97, 96], arrival=2, max_new=28)
    bench.add(first)
    bench.step()
    bench.add(second)
    bench.step()
    park(bench, second)
    bench.scheduler.abort("r1", bench.now_s)
    large = make_sequence(range(100, 146), arrival=3, max_new=1)
    bench.add(large)
    assert bench.step()[0].copies == ()
    assert second.parked is not None
    assert second.parked.fate is Fate.RECOMPUTE
    assert bench.scheduler.park_usage().used_bytes == 0
    resume(bench, second)
    bench.run()
    assert second.num_recomputes == 1
    assert_undisturbed(second, large)


# --- beside steps


def test_beside_steps_a_parking_sequence_owns_its_pages_until_the_copy_has_landed() -> None:
    bench = bench_of(copied(is_async=True))
    _, new = two(bench)
    table = list(new.page_table)
    batch = park(bench, new)
    assert not only_copy(batch).must_land
    assert batch.parked == (new,)
    assert (new.status, new.page_table) == (SeqStatus.PARKING, table)
    assert bench.scheduler.park_usage().num_parks == 0
    usable = bench.scheduler.pool.num_usable
    bench.land_all()
    assert (new.status, new.page_table) == (SeqStatus.PARKED, [])
    assert bench.scheduler.pool.num_usable == usable + len(table)
    assert bench.scheduler.park_usage().num_parks == 1


def test_beside_steps_a_restoring_sequence_runs_only_when_the_copy_has_landed() -> None:
    bench = bench_of(copied(is_async=True))
    _, new = two(bench)
    park(bench, new)
    bench.land_all()
    batch = resume(bench, new)
    assert new.status is SeqStatus.RESTORING
    assert batch.restored == ()
    assert new.page_table
    assert bench.scheduler.park_usage().num_resumes == 0
    bench.land_all()
    assert new.status is SeqStatus.RUNNING
    batch, _ = bench.step()
    assert batch.restored == (new,)
    assert new in [row.seq for row in batch.rows]
    assert bench.scheduler.park_usage().num_resumes == 1
    bench.run()
    assert_undisturbed(new)


def test_rows_whose_pages_are_still_being_copied_out_sit_a_step_out() -> None:
    """The leader is served; the copy is awaited for the other, and nobody else is parked meanwhile."""
    bench = bench_of(copied(is_async=True), pages=12, copy_steps=10**6)
    sequences = [make_sequence(8, arrival=i, max_new=36) for i in range(2)]
    bench.add(*sequences)
    batch = bench.step_until_parked()
    assert batch.parked == (sequences[1],)
    while not (batch := bench.schedule()).is_empty:
        bench.compute(batch)
    assert batch.awaits_copies
    assert sequences[0].status is SeqStatus.RUNNING
    bench.copy_steps = 2
    bench.run()
    assert_undisturbed(*sequences)


def test_pages_that_are_coming_keep_others_from_being_parked() -> None:
    bench = bench_of(copied(is_async=True), pages=24, copy_steps=8)
    sequences = [make_sequence(8, arrival=i, max_new=20) for i in range(3)]
    bench.add(*sequences)
    bench.run()
    assert sequences[0].num_parks == 0
    assert_undisturbed(*sequences)


@pytest.mark.parametrize("is_async", [False, True])
def test_replies_are_undisturbed_however_often_everybody_is_parked(*, is_async: bool) -> None:
    scheduler = make_scheduler(
        pages=24, park=copied(is_async=is_async), knobs=Knobs(park_every_tokens=2)
    )
    bench = Bench(scheduler)
    sequences = [make_sequence(9, arrival=i, max_new=20) for i in range(3)]
    bench.add(*sequences)
    bench.run()
    assert all(seq.num_parks >= 8 for seq in sequences)
    assert_undisturbed(*sequences)


# --- the budget


def test_over_budget_the_state_is_dropped_instead() -> None:
    bench = bench_of(copied(2))
    _, new = two(bench)
    batch = park(bench, new)
    assert batch.copies == ()
    assert new.parked is not None
    assert new.parked.fate is Fate.RECOMPUTE
    resume(bench, new)
    bench.run()
    assert_undisturbed(new)


def test_a_buffer_is_kept_for_the_next_park_and_given_back_at_the_end() -> None:
    bench = bench_of(copied())
    _, new = two(bench)
    first = only_copy(park(bench, new))
    resume(bench, new)
    bench.steps(2)
    held = bench.scheduler.park_usage().used_bytes
    assert held == first.capacity_bytes
    second = only_copy(park(bench, new))
    assert second.saved[0].buffer_id == first.saved[0].buffer_id
    resume(bench, new)
    bench.run()
    assert bench.scheduler.park_usage().used_bytes == 0
    assert bench.copier.buffers == {}


def test_the_idle_buffer_of_one_makes_room_for_the_park_of_another() -> None:
    bench = bench_of(copied(4))
    old, new = two(bench)
    first = only_copy(park(bench, new))
    resume(bench, new)
    bench.step()
    second = only_copy(park(bench, old))
    assert second.saved[0].buffer_id != first.saved[0].buffer_id
    assert list(bench.copier.buffers) == [second.saved[0].buffer_id]
    assert bench.scheduler.park_usage().used_bytes <= 4 * PAGE


def test_a_smaller_budget_drops_states_at_once() -> None:
    bench = bench_of(copied())
    _, new = two(bench)
    park(bench, new)
    bench.scheduler.steer(SetParkBudget(budget_bytes=0), bench.now_s)
    bench.step()
    assert new.parked is not None
    assert new.parked.fate is Fate.RECOMPUTE
    assert bench.scheduler.park_usage().used_bytes == 0
    assert bench.copier.buffers == {}


# --- failures


def test_a_park_for_which_there_is_no_host_memory_becomes_a_recompute() -> None:
    bench = bench_of(copied())
    _, new = two(bench)
    bench.scheduler.steer(ParkNow(request_id="r2"), bench.now_s)
    batch = bench.scheduler.schedule(bench.now_s)
    bench.scheduler.copy_failed(only_copy(batch).copy_id, bench.now_s)
    bench.scheduler.check()
    assert new.parked is not None
    assert new.parked.fate is Fate.RECOMPUTE
    assert bench.scheduler.park_usage().used_bytes == 0
    bench.compute(batch.of_running())
    resume(bench, new)
    bench.run()
    assert (new.num_parks, new.num_recomputes) == (1, 1)
    assert_undisturbed(new)


def test_the_same_beside_steps() -> None:
    bench = bench_of(copied(is_async=True), copy_steps=10**6)
    _, new = two(bench)
    order = only_copy(park(bench, new))
    bench.step()
    bench.copier.fail(order.copy_id)
    bench.scheduler.copy_failed(order.copy_id, bench.now_s)
    bench.scheduler.check()
    assert new.status is SeqStatus.PARKED
    assert (new.page_table, new.num_computed) == ([], 0)
    assert bench.scheduler.park_usage().used_bytes == 0
    assert bench.scheduler.park_usage().num_parks == 1


def test_the_knob_makes_the_first_park_fail_and_not_the_second() -> None:
    park_config, knobs = copied(), Knobs(fail_save=1)
    bench = Bench(make_scheduler(pages=16, park=park_config, knobs=knobs))
    _, new = two(bench)
    assert park(bench, new).copies == ()
    resume(bench, new)
    bench.steps(2)
    assert len(park(bench, new).copies) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_a_restore_that_fails_is_undone_and_tried_again(*, is_async: bool) -> None:
    bench = bench_of(copied(is_async=is_async))
    _, new = two(bench)
    park(bench, new)
    bench.land_all()
    usable = bench.scheduler.pool.num_usable
    bench.scheduler.steer(ResumeNext(request_id="r2"), bench.now_s)
    bench.now_s += 1
    batch = bench.scheduler.schedule(bench.now_s)
    bench.scheduler.copy_failed(only_copy(batch).copy_id, bench.now_s)
    batch = batch.of_running()
    assert batch.restored == ()
    assert new not in [row.seq for row in batch.rows]
    assert (new.status, new.num_parks) == (SeqStatus.PARKED, 1)
    assert bench.scheduler.pool.num_usable == usable
    bench.compute(batch)
    assert bench.step_until(lambda batch: bool(batch.restored)).restored == (new,)
    bench.run()
    assert (new.num_parks, new.num_recomputes) == (1, 0)
    assert_undisturbed(new)


def test_an_end_that_no_step_has_reported_yet_keeps_the_scheduler_busy() -> None:
    """Otherwise nobody would plan the step that reports it, and its client would wait for ever."""
    bench = bench_of(copied())
    seq = make_sequence(8, arrival=1, max_new=20)
    bench.add(seq)
    bench.steps(3)
    park(bench, seq)
    bench.scheduler.steer(ResumeNext(request_id="r1"), bench.now_s)
    while not seq.has_ended:
        bench.now_s += 10.0
        batch = bench.scheduler.schedule(bench.now_s)
        for order in batch.copies:
            bench.scheduler.copy_failed(order.copy_id, bench.now_s)
    assert not bench.scheduler.is_idle
    (end,) = bench.scheduler.schedule(bench.now_s).ended
    assert (end.seq, end.reason) == (seq, EndReason.RESTORE_FAILED)
    assert bench.scheduler.is_idle


def test_a_restore_that_fails_eight_times_in_a_minute_ends_the_sequence() -> None:
    bench = bench_of(copied())
    old, new = two(bench, max_new=20)
    park(bench, new)
    bench.scheduler.steer(ResumeNext(request_id="r2"), bench.now_s)
    fails = 0
    while not bench.ends:
        bench.now_s += 10.0
        batch = bench.scheduler.schedule(bench.now_s)
        for order in batch.copies:
            fails += 1
            bench.scheduler.copy_failed(order.copy_id, bench.now_s)
        bench.ends |= {end.seq.request_id: end.reason for end in batch.ended}
        bench.compute(batch.of_running())
    assert fails == 8
    assert bench.ends == {"r2": EndReason.RESTORE_FAILED}
    assert bench.scheduler.park_usage().used_bytes == 0
    bench.run()
    assert_undisturbed(old)


def test_while_nothing_else_runs_a_failed_restore_names_the_moment_to_try_again() -> None:
    bench = bench_of(copied())
    seq = make_sequence(8, max_new=8)
    bench.add(seq)
    bench.steps(2)
    park(bench, seq)
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    batch = bench.scheduler.schedule(bench.now_s)
    bench.scheduler.copy_failed(only_copy(batch).copy_id, bench.now_s)
    batch = bench.scheduler.schedule(bench.now_s + 0.1)
    assert batch.is_empty
    assert batch.wake_s == bench.now_s + 1.0


def test_one_whose_buffer_cannot_be_pinned_parks_in_step_from_then_on() -> None:
    bench = bench_of(copied(is_async=True))
    old, new = two(bench)
    bench.scheduler.buffer_is_pageable("r2")
    assert only_copy(park(bench, new)).must_land
    assert new.status is SeqStatus.PARKED
    assert not only_copy(park(bench, old)).must_land


@pytest.mark.parametrize(
    ("park", "is_async"),
    [(copied(is_async=True), True), (copied(), False), (in_place(), False)],
)
def test_whether_copies_run_beside_steps_is_told_as_it_is_now(
    park: ParkConfig, is_async: bool
) -> None:
    bench = bench_of(park)
    _, new = two(bench)
    assert bench.scheduler.park_usage().is_async is is_async
    bench.scheduler.buffer_is_pageable(new.request_id)
    assert not bench.scheduler.park_usage().is_async
    bench.scheduler.abort(new.request_id, bench.now_s)
    assert bench.scheduler.park_usage().is_async is is_async


# --- cancels


@pytest.mark.parametrize("moment", ["out", "parked", "in"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_cancel_at_any_moment_leaves_nothing_a_thousand_times_in_a_row(
    moment: str, *, is_async: bool
) -> None:
    bench = bench_of(copied(is_async=is_async), copy_steps=10**6)
    for index in range(1000):
        stays, gone = (make_sequence(8, arrival=2 * index + i, max_new=20) for i in (0, 1))
        bench.add(stays, gone)
        bench.step()
        park(bench, gone)
        if moment != "out":
            bench.land_all()
        if moment == "in":
            resume(bench, gone)
        for seq in (gone, stays):
            bench.scheduler.abort(seq.request_id, bench.now_s)
            bench.scheduler.check()
        bench.land_all()
        assert bench.scheduler.pool.num_usable == 24
        assert bench.scheduler.park_usage().used_bytes == 0
        assert bench.copier.buffers == {}


def test_pages_of_a_cancelled_park_are_not_given_away_while_they_are_copied() -> None:
    bench = bench_of(copied(is_async=True), copy_steps=10**6)
    _, new = two(bench)
    park(bench, new)
    usable = bench.scheduler.pool.num_usable
    bench.scheduler.abort("r2", bench.now_s)
    assert bench.scheduler.pool.num_usable == usable
    bench.land_all()
    assert bench.scheduler.pool.num_usable == usable + 3


def test_copies_that_are_not_under_way_are_ignored() -> None:
    bench = bench_of(copied())
    two(bench)
    bench.scheduler.copy_landed(99, bench.now_s)
    bench.scheduler.copy_failed(99, bench.now_s)
    bench.scheduler.check()
