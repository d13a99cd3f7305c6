"""Parks by copy that cannot be made, fail or are cancelled: what is lost is computed again, and nothing is held."""

from __future__ import annotations

import pytest

from engine.core.config import Knobs
from engine.core.parked import EndReason, Fate
from engine.core.types import SeqStatus
from engine.runs import ParkNow, ResumeNext, SetParkBudget
from fakes.builders import copied, make_scheduler, make_sequence
from fakes.copy_bench import bench_of, only_copy, park, resume, two
from fakes.stepping import Bench, assert_undisturbed


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
