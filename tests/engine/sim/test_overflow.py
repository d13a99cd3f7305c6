"""Four chats that do not all fit: how often somebody is parked, and for how long, at the step times of real machines.

The figures that must be reached are few parks (whoever is sent out and brought back for nothing costs copies) and
short waits; a rule of rotation trades one for the other.
"""

from __future__ import annotations

import pytest

from engine.core.config import ParkConfig, ParkMemory, SchedulerConfig
from engine.core.cost_model import Calibration
from engine.core.victim_policies import VICTIM_POLICIES
from engine.sim.simulator import Outcome, Simulator
from engine.sim.traces import Arrival, Trace

FIFTHS = {8192: (1000, 1457), 2048: (300, 314)}
"""Prompt and reply of each of four chats that need a fifth more than the pool has."""

IN_PLACE = ParkConfig(memory=ParkMemory.IN_PLACE, budget_bytes=1 << 20, page_bytes=1)


def machine(step_s: float) -> Calibration:
    """A machine on which a step of four chats takes `step_s`."""
    return Calibration(
        step_s=step_s / 2,
        decode_token_s=step_s / 8,
        prefill_token_s=step_s / 25,
        context_token_s=1e-9,
    )


def four(
    pool_tokens: int, lengths: tuple[int, int], step_s: float, policy: str, *, is_limited: bool
) -> Outcome:
    prompt, reply = lengths
    chat = Arrival(at_s=0.0, prompt_tokens=prompt, reply_tokens=reply, is_limited=is_limited)
    config = SchedulerConfig(num_pages=pool_tokens // 32, victim_policy=policy, park=IN_PLACE)
    return Simulator(config, Trace(name="four", arrivals=(chat,) * 4), machine(step_s)).run()


@pytest.mark.parametrize("is_limited", [True, False], ids=["known length", "unknown length"])
@pytest.mark.parametrize("step_s", [0.003, 0.01, 0.02, 0.03])
@pytest.mark.parametrize("pool_tokens", FIFTHS)
def test_four_chats_that_overflow_by_a_fifth_are_parked_at_most_four_times(
    pool_tokens: int, step_s: float, *, is_limited: bool
) -> None:
    for policy in VICTIM_POLICIES:
        lengths = FIFTHS[pool_tokens]
        outcome = four(pool_tokens, lengths, step_s, policy, is_limited=is_limited)
        assert 1 <= outcome.parks <= 4, f"{policy}: {outcome}"
        assert outcome.longest_wait_s <= 4.5, f"{policy}: {outcome}"


@pytest.mark.parametrize("is_limited", [True, False], ids=["known length", "unknown length"])
@pytest.mark.parametrize("policy", VICTIM_POLICIES)
def test_where_half_fit_and_steps_are_slow_turns_are_few_and_waits_stay_short(
    policy: str, *, is_limited: bool
) -> None:
    """Turns of two seconds each would be about sixty parks in these hundred seconds."""
    outcome = four(2048, (340, 700), 0.1, policy, is_limited=is_limited)
    assert outcome.makespan_s > 90
    assert outcome.rotations <= 20
    assert outcome.parks <= 24
    assert outcome.longest_wait_s <= 10.5
