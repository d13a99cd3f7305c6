"""Steps planned at a glance are those that a whole plan comes to, which would have moved and taken nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.core import scheduler as scheduler_module
from engine.core.config import Knobs
from engine.core.parking import Parking
from engine.core.pressure import Pressure
from engine.core.scheduler import Scheduler
from engine.core.steady import steady_rows
from engine.core.types import StepRow
from engine.core.yard import Yard
from fakes.builders import make_scheduler, make_sequence
from fakes.workloads import play


def run_until_steady(scheduler: Scheduler) -> None:
    for _ in range(10):
        batch = scheduler.schedule(0.0)
        if batch.is_steady:
            return
        scheduler.update(batch, [7] * len(batch.sampling_rows), 0.0)
    pytest.fail("it never becomes steady")


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_a_whole_plan_comes_to_the_same(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[bool] = Counter()

    def compare(yard: Yard) -> tuple[StepRow, ...] | None:
        rows = steady_rows(yard)
        seen[rows is not None] += 1
        if rows is not None:
            keeper, pool = yard.keeper, yard.pool
            others = (yard.lines.has_outside, keeper.is_over_budget, pool.num_stranded)
            assert not any(others)
            assert Pressure(yard, Parking(yard)).make_room() == (rows, {})
            assert yard.moves.is_empty
            left = (keeper.take_orders(), keeper.take_dropped(), pool.collect_cold())
            assert not any(left)
        return rows

    monkeypatch.setattr(scheduler_module, "steady_rows", compare)
    for seed in range(first, first + 20):
        play(seed, checked=False)
    assert seen[True] > 40
    assert seen[False] > 100


def test_a_reply_is_steady_until_it_needs_a_page() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence(5, arrival=0, max_new=20))
    kinds = []
    for _ in range(10):
        batch = scheduler.schedule(0.0)
        kinds.append(batch.is_steady)
        scheduler.update(batch, [7], 0.0)
    assert kinds == [False, True, True, True, False, True, True, True, False, True]


def test_somebody_who_waits_is_asked_in_at_once() -> None:
    scheduler = make_scheduler()
    scheduler.add(make_sequence(5, arrival=0, max_new=20))
    run_until_steady(scheduler)
    scheduler.add(make_sequence(5, arrival=1, max_new=20))
    batch = scheduler.schedule(0.0)
    assert not batch.is_steady
    assert [row.seq.request_id for row in batch.rows] == ["r0", "r1"]


def test_with_a_knob_every_plan_is_a_whole_one() -> None:
    knobs = Knobs(park_every_tokens=3)
    scheduler = make_scheduler(knobs=knobs)
    scheduler.add(make_sequence(5, arrival=0, max_new=20))
    for _ in range(6):
        batch = scheduler.schedule(0.0)
        assert not batch.is_steady
        scheduler.update(batch, [7] * len(batch.sampling_rows), 0.0)
