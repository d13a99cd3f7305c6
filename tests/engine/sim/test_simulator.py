"""The simulator's clock is the cost model's, and its decisions are the scheduler's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.core.config import ParkConfig, ParkMemory, SchedulerConfig
from engine.core.cost_model import Calibration, CostModel
from engine.sim.simulator import Outcome, Simulator
from engine.sim.traces import Arrival, Trace

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
