"""The plan frees what is needed, counts shared pages right, and leaves the leader alone."""

from __future__ import annotations

from engine.api import Priority
from engine.core.kv_pool import KVPool
from engine.core.planner import plan_preemption
from engine.core.types import PreemptPlan, Sequence
from engine.core.victim_policies import VICTIM_POLICIES
from fakes.builders import make_sequence

FCFS = VICTIM_POLICIES["fcfs"]


def holder(
    pool: KVPool, pages: int, arrival: int, priority: Priority = Priority.NORMAL
) -> Sequence:
    seq = make_sequence(arrival=arrival, priority=priority)
    seq.page_table = pool.take(pages) or []
    return seq


def names(plan: PreemptPlan | None) -> list[str]:
    return [victim.seq.request_id for victim in plan.victims] if plan else []


def test_no_plan_while_there_is_room() -> None:
    pool = KVPool(4, 2)
    running = [holder(pool, 1, 0), holder(pool, 1, 1)]
    assert plan_preemption(running, {running[0]: 2}, pool, FCFS) is None


def test_the_newest_leaves_and_no_more_than_needed() -> None:
    pool = KVPool(6, 2)
    running = [holder(pool, 2, arrival) for arrival in range(3)]
    plan = plan_preemption(running, {running[0]: 1}, pool, FCFS)
    assert names(plan) == ["r2"]
    assert plan is not None
    assert (plan.pages_needed, plan.pages_freed) == (1, 2)
    assert plan.reason == "the step needs 1 new pages, 0 are free or reusable"


def test_several_leave_when_one_does_not_suffice() -> None:
    pool = KVPool(6, 2)
    running = [holder(pool, 2, arrival) for arrival in range(3)]
    assert names(plan_preemption(running, {running[0]: 3}, pool, FCFS)) == ["r2", "r1"]


def test_a_victims_own_need_leaves_with_it() -> None:
    pool = KVPool(4, 2)
    running = [holder(pool, 2, 0), holder(pool, 1, 1), holder(pool, 1, 2)]
    needs = {running[1]: 1, running[2]: 1}
    assert names(plan_preemption(running, needs, pool, FCFS)) == ["r2"]


def test_the_leader_stays_even_if_that_is_not_enough() -> None:
    pool = KVPool(4, 2)
    running = [holder(pool, 3, 0), holder(pool, 1, 1)]
    assert names(plan_preemption(running, {running[0]: 5}, pool, FCFS)) == ["r1"]


def test_a_lone_sequence_is_no_victim() -> None:
    pool = KVPool(2, 2)
    running = [holder(pool, 2, 0)]
    assert plan_preemption(running, {running[0]: 1}, pool, FCFS) is None


def test_less_important_sequences_leave_before_newer_ones() -> None:
    pool = KVPool(3, 2)
    running = [holder(pool, 1, 1), holder(pool, 1, 2), holder(pool, 1, 0, Priority.BACKGROUND)]
    assert names(plan_preemption(running, {running[0]: 1}, pool, FCFS)) == ["r0"]


def test_pages_that_others_still_use_are_not_counted_as_freed() -> None:
    pool = KVPool(4, 2)
    leader, second, third = holder(pool, 2, 0), holder(pool, 1, 1), holder(pool, 1, 2)
    shared = leader.page_table[:1]
    pool.share(shared)
    third.page_table = shared + third.page_table
    plan = plan_preemption([leader, second, third], {leader: 1}, pool, FCFS)
    assert names(plan) == ["r2"]
    assert plan is not None
    assert plan.pages_freed == 1


def test_a_page_shared_by_two_victims_is_freed_once_by_the_second() -> None:
    pool = KVPool(4, 2)
    leader, second = holder(pool, 2, 0), holder(pool, 2, 1)
    third = make_sequence(arrival=2)
    third.page_table = second.page_table[:1]
    pool.share(third.page_table)
    plan = plan_preemption([leader, second, third], {leader: 2}, pool, FCFS)
    assert plan is not None
    assert [(v.seq.request_id, v.pages_freed) for v in plan.victims] == [("r2", 0), ("r1", 2)]
    assert plan.pages_freed == 2
