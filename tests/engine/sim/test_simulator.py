"""The simulator's clock is the cost model's, its decisions are the scheduler's, and it reproduces what is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from engine.core.config import ParkConfig, ParkMemory, ResumeOrder, SchedulerConfig
from engine.core.cost_model import Calibration, CostModel
from engine.core.victim_policies import VICTIM_POLICIES
from engine.sim.simulator import Outcome, Simulator
from engine.sim.traces import Arrival, Shape, Trace, make_trace

CALIBRATION = Calibration()
MODEL = CostModel(CALIBRATION)
COPIED = ParkConfig(memory=ParkMemory.COPIED, page_bytes=32 * CALIBRATION.token_bytes)


def simulate(
    trace: Trace, *, pool_tokens: int = 8192, park: ParkConfig = COPIED, seats: int = 4
) -> Outcome:
    config = SchedulerConfig(num_pages=pool_tokens // 32, max_running=seats, park=park)
    return Simulator(config, trace, CALIBRATION).run()


def chats(*reply_tokens: int, prompt: int = 200, at_s: float = 0.0, limited: bool = False) -> Trace:
    arrivals = tuple(
        Arrival(at_s=at_s, prompt_tokens=prompt, reply_tokens=n, is_limited=limited)
        for n in reply_tokens
    )
    return Trace(name="chats", arrivals=arrivals)


# --- the clock


def test_one_chat_takes_its_prompt_and_its_tokens() -> None:
    outcome = simulate(chats(10))
    steps = [(0, 200), *((200 + i, 1) for i in range(9))]
    assert outcome.makespan_s == pytest.approx(sum(MODEL.step_s([step]) for step in steps))
    assert outcome.tokens_generated == 10
    assert (outcome.parks, outcome.tokens_copied, outcome.tokens_recomputed) == (0, 0, 0)


def test_time_passes_while_nobody_is_there() -> None:
    early, late = simulate(chats(10)), simulate(chats(10, at_s=100.0))
    assert late.makespan_s == pytest.approx(100.0 + early.makespan_s)
    assert late.mean_completion_s == pytest.approx(early.mean_completion_s)


def test_the_wait_is_the_longest_stretch_outside_the_pool() -> None:
    alone = simulate(chats(100)).makespan_s
    outcome = simulate(chats(100, 100), seats=1)
    assert outcome.longest_wait_s == pytest.approx(alone, rel=0.1)


@pytest.mark.parametrize("is_async", [False, True])
def test_copied_parks_cost_their_bytes_unless_they_run_beside_the_steps(*, is_async: bool) -> None:
    trace = chats(900, 900, 900, limited=True)
    park = replace(COPIED, is_async=is_async)
    copied = simulate(trace, pool_tokens=2048, park=park)
    slow = replace(CALIBRATION, copy_out_bytes_s=1e7, copy_in_bytes_s=1e7)
    config = SchedulerConfig(num_pages=64, park=park)
    slowly = Simulator(config, trace, slow).run()
    assert copied.tokens_copied > 0
    assert copied.tokens_generated == slowly.tokens_generated == 2700
    if not is_async:
        extra_s = slowly.tokens_copied * CALIBRATION.token_bytes / 1e7
        assert slowly.makespan_s - copied.makespan_s > extra_s / 2


def test_parks_in_place_copy_nothing_and_a_recompute_computes_again() -> None:
    trace = chats(900, 900, 900, limited=True)
    in_place = ParkConfig(
        memory=ParkMemory.IN_PLACE, budget_bytes=1 << 40, arena_pages=1000, page_bytes=1
    )
    kept = simulate(trace, pool_tokens=2048, park=in_place)
    assert kept.parks > 0
    assert (kept.tokens_copied, kept.tokens_recomputed) == (0, 0)
    dropped = simulate(trace, pool_tokens=2048, park=ParkConfig())
    assert dropped.tokens_recomputed > 0
    assert dropped.makespan_s > kept.makespan_s


def test_the_same_trace_gives_the_same_outcome() -> None:
    trace = chats(400, 900, 100, 700)
    assert simulate(trace, pool_tokens=2048) == simulate(trace, pool_tokens=2048)


# --- what is known of the policies


def outcomes(
    policy: str,
    *,
    shape: Shape,
    order: ResumeOrder = ResumeOrder.HEAD,
    num_chats: int = 8,
    num_seeds: int = 2,
    rotate_after_s: float = 2.0,
) -> list[Outcome]:
    """What a policy makes of some traces in 8192 cells, parks being copies."""
    config = SchedulerConfig(
        num_pages=8192 // 32,
        max_running=num_chats,
        victim_policy=policy,
        park=replace(COPIED, resume_order=order, rotate_after_s=rotate_after_s),
    )
    traces = (make_trace(shape, num_chats, window_tokens=8192, seed=s) for s in range(num_seeds))
    return [Simulator(config, trace, CALIBRATION).run() for trace in traces]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "smallest"])
def test_head_of_line_at_least_halves_the_longest_wait_of_eight_chats(policy: str) -> None:
    waits = dict.fromkeys(ResumeOrder, 0.0)
    for shape in Shape:
        found = {order: outcomes(policy, shape=shape, order=order) for order in ResumeOrder}
        longest = {order: max(o.longest_wait_s for o in found[order]) for order in ResumeOrder}
        spans = [sum(o.makespan_s for o in found[order]) for order in ResumeOrder]
        assert longest[ResumeOrder.HEAD] <= longest[ResumeOrder.PASS] / 1.9, shape
        assert spans[0] == pytest.approx(spans[1], rel=0.06), shape
        waits = {order: waits[order] + longest[order] for order in ResumeOrder}
    assert waits[ResumeOrder.PASS] >= 2.5 * waits[ResumeOrder.HEAD]


def totals(
    *policies: str, shapes: Iterable[Shape], rotate_after_s: float
) -> dict[str, tuple[int, float]]:
    """Tokens copied and completion times of each policy, summed over six traces of each shape."""
    found = {}
    for policy in policies:
        runs = [
            run
            for shape in shapes
            for run in outcomes(policy, shape=shape, num_seeds=6, rotate_after_s=rotate_after_s)
        ]
        copied = sum(run.tokens_copied for run in runs)
        found[policy] = (copied, sum(run.mean_completion_s for run in runs))
    return found


@pytest.mark.slow
def test_parking_the_largest_copies_most() -> None:
    """Ordinary victims alone: rotation takes whoever frees fewest pages, whatever the policy."""
    figures = totals(
        "largest", "smallest", "youngest",
        shapes=(Shape.UNIFORM, Shape.HEAVY), rotate_after_s=1e9,
    )  # fmt: skip
    copied = {policy: tokens for policy, (tokens, _) in figures.items()}
    assert copied["largest"] > 1.2 * copied["smallest"]
    assert copied["largest"] > 1.1 * copied["youngest"]


@pytest.mark.full
@pytest.mark.parametrize("rotate_after_s", [2.0, 1e9])
def test_largest_is_the_worst_of_all_policies(rotate_after_s: float) -> None:
    figures = totals(*VICTIM_POLICIES, shapes=Shape, rotate_after_s=rotate_after_s)
    for figure in (0, 1):
        assert max(figures, key=lambda policy: figures[policy][figure]) == "largest"


@pytest.mark.slow
def test_four_chats_differ_little_whatever_the_policy() -> None:
    times = [
        sum(run.makespan_s for run in outcomes(policy, shape=Shape.UNIFORM, num_chats=4))
        for policy in VICTIM_POLICIES
    ]
    assert max(times) < 1.02 * min(times)
