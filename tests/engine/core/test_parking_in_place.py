"""Parks where the pool is host memory: pages change accounts, nothing is copied, memory is given back."""

from __future__ import annotations

import pytest

from engine.core.parked import Fate
from engine.core.types import SeqStatus
from engine.runs import ParkNow, ResumeNext, SetParkBudget
from fakes.builders import in_place, make_scheduler, make_sequence
from fakes.stepping import Bench, assert_undisturbed


def bench_of(budget_pages: int = 64, *, pages: int = 10) -> Bench:
    """A pool of pages of four tokens in which nobody is rotated."""
    park = in_place(budget_pages, rotate_after_s=1e9)
    return Bench(make_scheduler(pages=pages, page_tokens=4, park=park))


def test_a_park_moves_no_page_and_gives_all_its_room_away() -> None:
    bench = bench_of()
    old, new = (make_sequence(8, arrival=i, max_new=20) for i in (1, 2))
    bench.add(old, new)
    while not (batch := bench.schedule()).parked:
        table, computed = list(new.page_table), new.num_computed
        bench.compute(batch)
    assert batch.copies == ()
    assert new.parked is not None
    assert new.parked.fate is Fate.SWAP
    assert (new.page_table, new.num_computed) == (table, computed + 1)
    assert bench.scheduler.pool.num_parked == len(table)
    bench.compute(batch)
    while not (batch := bench.schedule()).restored:
        bench.compute(batch)
    assert new.page_table[: len(table)] == table
    assert (batch.rows[0].start, batch.rows[0].count) == (computed + 1, 1)
    bench.compute(batch)
    bench.run()
    assert (new.num_parks, new.num_recomputes) == (1, 0)
    assert_undisturbed(old, new)


def test_what_was_parked_costs_the_pool_nothing() -> None:
    bench = bench_of()
    bench.add(*(make_sequence(8, arrival=i, max_new=20) for i in (1, 2)))
    bench.step_until_parked()
    usage = bench.scheduler.pool.usage()
    held = sum(len(seq.page_table) for seq in bench.scheduler.line(SeqStatus.RUNNING))
    assert usage.free_pages + usage.reusable_pages + held == 10
    assert bench.scheduler.park_usage().used_bytes == bench.scheduler.pool.num_parked


def test_over_budget_the_state_is_dropped_instead() -> None:
    bench = bench_of(4)
    old, new = (make_sequence(8, arrival=i, max_new=20) for i in (1, 2))
    bench.add(old, new)
    bench.step_until_parked()
    assert new.parked is not None
    assert new.parked.fate is Fate.RECOMPUTE
    assert bench.scheduler.park_usage().used_bytes == 0
    bench.run()
    assert_undisturbed(old, new)


def test_whose_state_fits_the_budget_leaves_before_a_newer_one_whose_does_not() -> None:
    bench = bench_of(4, pages=16)
    old, small, large = (make_sequence(n, arrival=i, max_new=30) for i, n in enumerate((8, 4, 24)))
    bench.add(old, small, large)
    assert bench.step_until_parked().parked == (small,)
    assert small.num_recomputes == 0
    bench.run()
    assert_undisturbed(old, small, large)


def test_memory_is_given_back_when_a_parked_sequence_returns_or_ends() -> None:
    bench = bench_of()
    bench.add(*(make_sequence(8, arrival=i, max_new=20) for i in (1, 2)))
    bench.run()
    pool = bench.scheduler.pool
    assert len(bench.runner.committed) <= pool.num_pages
    assert pool.num_parked == 0


def test_shared_pages_stay_with_those_who_use_them() -> None:
    bench = bench_of(pages=16)
    first = make_sequence(range(12), arrival=1, max_new=28)
    second = make_sequence([*range(8), 99, 98, 97, 96], arrival=2, max_new=28)
    bench.add(first)
    bench.step()
    bench.add(second)
    batch = bench.step_until_parked()
    assert batch.parked == (second,)
    shared = second.page_table[:2]
    assert shared == first.page_table[:2]
    assert bench.scheduler.pool.num_parked == len(second.page_table) - 2
    bench.scheduler.abort("r1", bench.now_s)  # the last other holder leaves
    assert bench.scheduler.pool.num_parked == len(second.page_table)
    bench.scheduler.check()
    bench.run()
    assert_undisturbed(second)


def test_a_newcomer_takes_up_pages_of_a_parked_sequence_that_begins_like_it() -> None:
    bench = bench_of(pages=12)
    old = make_sequence(4, arrival=1, max_new=40)
    parked = make_sequence(range(500, 512), arrival=2, max_new=30)
    bench.add(old, parked)
    bench.step_until_parked()
    newcomer = make_sequence(range(500, 513), arrival=0, max_new=2)
    bench.add(newcomer)
    bench.scheduler.steer(ResumeNext(request_id="r0"), bench.now_s)
    batch = bench.step_until(lambda batch: newcomer in batch.started)
    assert newcomer.num_cached == 12
    assert newcomer.page_table[:3] == parked.page_table[:3]
    assert newcomer in [row.seq for row in batch.rows]
    bench.run()
    assert_undisturbed(old, parked, newcomer)


def test_pages_left_behind_over_budget_stay_in_the_pool_until_their_room_is_needed() -> None:
    bench = bench_of(3, pages=16)
    first = make_sequence(range(12), arrival=1, max_new=28)
    second = make_sequence([*range(8), 99], arrival=2, max_new=12)
    bench.add(first)
    bench.step()
    bench.add(second)
    bench.steps(2)
    bench.scheduler.steer(ParkNow(request_id="r2"), bench.now_s)
    bench.step_until_parked()
    pool = bench.scheduler.pool
    assert (pool.num_parked, pool.num_stranded) == (1, 0)
    bench.scheduler.steer(SetParkBudget(budget_bytes=2), bench.now_s)
    bench.scheduler.abort("r1", bench.now_s)
    assert (pool.num_parked, pool.num_stranded) == (2, 1)
    bench.scheduler.check()
    bench.scheduler.steer(ResumeNext(request_id="r2"), bench.now_s)
    bench.run()
    assert_undisturbed(second)
    assert second.num_recomputes == 0


def test_room_that_is_needed_is_taken_from_what_was_left_behind() -> None:
    bench = bench_of(2, pages=9)
    first = make_sequence(range(12), arrival=1, max_new=8)
    second = make_sequence([*range(8), 99], arrival=2, max_new=12)
    bench.add(first)
    bench.step()
    bench.add(second)
    bench.step()
    bench.scheduler.steer(ParkNow(request_id="r2"), bench.now_s)
    bench.step()
    assert second.parked is not None
    assert second.parked.fate is Fate.SWAP
    bench.scheduler.abort("r1", bench.now_s)
    assert bench.scheduler.pool.num_stranded == 1
    large = make_sequence(range(100, 135), arrival=3, max_new=1)
    bench.add(large)
    bench.step()
    assert second.parked.fate is Fate.RECOMPUTE
    assert (second.page_table, bench.scheduler.pool.num_stranded) == ([], 0)
    bench.scheduler.steer(ResumeNext(request_id="r2"), bench.now_s)
    bench.run()
    assert_undisturbed(second, large)


@pytest.mark.parametrize("budget", [0, 3])
def test_a_smaller_budget_is_honoured_at_once(budget: int) -> None:
    bench = bench_of()
    old, new = (make_sequence(8, arrival=i, max_new=20) for i in (1, 2))
    bench.add(old, new)
    bench.step_until_parked()
    bench.scheduler.steer(SetParkBudget(budget_bytes=budget), bench.now_s)
    bench.scheduler.check()
    assert bench.scheduler.park_usage().used_bytes == 0
    assert new.parked is not None
    assert new.parked.fate is Fate.RECOMPUTE
    bench.run()
    assert_undisturbed(old, new)


def test_a_larger_budget_counts_from_the_next_park() -> None:
    park = in_place(0, rotate_after_s=1e9)
    bench = Bench(make_scheduler(pages=10, page_tokens=4, park=park))
    bench.scheduler.steer(SetParkBudget(budget_bytes=-1), 0.0)
    old, new = (make_sequence(8, arrival=i, max_new=20) for i in (1, 2))
    bench.add(old, new)
    bench.step_until_parked()
    assert new.parked is not None
    assert new.parked.fate is Fate.RECOMPUTE  # the arena has no room for more
    bench.run()
    assert_undisturbed(old, new)


def test_a_cancel_while_parked_frees_everything_a_thousand_times_in_a_row() -> None:
    bench = bench_of()
    for index in range(1000):
        stays, gone = (make_sequence(8, arrival=2 * index + i, max_new=20) for i in (0, 1))
        bench.add(stays, gone)
        bench.step()
        bench.scheduler.steer(ParkNow(request_id=gone.request_id), bench.now_s)
        bench.step()
        assert gone.status is SeqStatus.PARKED
        assert bench.scheduler.park_usage().used_bytes == 2
        for seq in (gone, stays):
            bench.scheduler.abort(seq.request_id, bench.now_s)
        assert bench.scheduler.pool.num_usable == 10
        assert bench.scheduler.park_usage().used_bytes == 0
