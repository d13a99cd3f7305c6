"""Steps planned at a glance are those that a whole plan comes to, which would have moved and taken nothing."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.core import scheduler as scheduler_module
from engine.core.config import Knobs
from engine.core.entrance import Entrance
from engine.core.parking import Parking
from engine.core.pressure import Pressure
from engine.core.scheduler import Scheduler
from engine.core.steady import Still, steady_rows
from engine.core.types import StepRow
from engine.core.yard import Yard
from engine.runs import Pin
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
    outside: Counter[bool] = Counter()

    def compare(yard: Yard, still: Still | None, now_s: float) -> tuple[StepRow, ...] | None:
        rows = steady_rows(yard, still, now_s)
        seen[rows is not None] += 1
        if rows is not None:
            keeper, pool = yard.keeper, yard.pool
            assert not any((keeper.is_over_budget, pool.num_stranded))
            outside[yard.lines.has_outside] += 1
            head = yard.lines.head(yard.rank)
            if head is not None:
                assert not Entrance(yard, Parking(yard)).judge(head.party).is_admitted
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
    assert min(outside.values()) > 10


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


def a_full_pool() -> Scheduler:
    """One that replies, and another that waits for the pages that the first has."""
    scheduler = make_scheduler(pages=6)
    scheduler.add(make_sequence(12, arrival=0, max_new=11))
    run_until_steady(scheduler)
    scheduler.add(make_sequence(16, arrival=1, max_new=3))
    assert not scheduler.schedule(0.0).is_steady
    assert scheduler.num_waiting == 1
    return scheduler


def test_who_cannot_come_in_is_asked_again_after_a_moment_only() -> None:
    scheduler = a_full_pool()
    kinds = []
    for now_s in (0.01, 0.02, 0.049, 0.051, 0.06):
        batch = scheduler.schedule(now_s)
        kinds.append(batch.is_steady)
    assert kinds == [True, True, True, False, True]


def test_who_cannot_come_in_is_asked_at_once_when_somebody_else_comes_or_is_steered() -> None:
    scheduler = a_full_pool()
    assert scheduler.schedule(0.01).is_steady
    scheduler.steer(Pin(request_id="r1"), 0.011)
    assert not scheduler.schedule(0.012).is_steady
    assert scheduler.schedule(0.013).is_steady
    scheduler.abort("r1", 0.014)
    scheduler.add(make_sequence(2, arrival=2, max_new=2))
    assert not scheduler.schedule(0.015).is_steady


def test_with_a_knob_every_plan_is_a_whole_one() -> None:
    knobs = Knobs(park_every_tokens=3)
    scheduler = make_scheduler(knobs=knobs)
    scheduler.add(make_sequence(5, arrival=0, max_new=20))
    for _ in range(6):
        batch = scheduler.schedule(0.0)
        assert not batch.is_steady
        scheduler.update(batch, [7] * len(batch.sampling_rows), 0.0)
