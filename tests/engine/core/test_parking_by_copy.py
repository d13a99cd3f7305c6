"""Parks that copy pages to host buffers: orders, states, buffers, failures, and cancels at every moment."""

from __future__ import annotations

import pytest

from engine.core.config import Knobs, ParkConfig
from engine.core.host_pool import ROUNDING_BYTES
from engine.core.parked import CopyWay, Fate
from engine.core.types import SeqStatus
from fakes.builders import copied, in_place, make_scheduler, make_sequence
from fakes.copy_bench import bench_of, only_copy, park, resume, two
from fakes.stepping import Bench, assert_undisturbed

PAGE = ROUNDING_BYTES


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
