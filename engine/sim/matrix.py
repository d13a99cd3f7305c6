"""The comparison that `layby simulate` prints: chats, pools, policies and resume orders, each over several seeds.

Pure, on the simulator's virtual clock: the same arguments give the same rows on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.core.config import PAGE_TOKENS, ParkMemory, ResumeOrder, SchedulerConfig
from engine.core.cost_model import Calibration
from engine.sim.simulator import Outcome, Simulator, park_config
from engine.sim.traces import Shape, make_trace

BUDGET_BYTES = 8 << 30
"""What parked chats may hold: what `--preempt-ram` allows unless it is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Some chats that start together in one pool; each has a seat."""

    shape: Shape
    num_chats: int
    pool_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a policy and a resume order make of a case."""

    case: Case
    policy: str
    resume_order: str
    outcome: Outcome
    """Means over the seeds; of the longest waits, the longest."""


def all_cases() -> tuple[Case, ...]:
    """4 and 8 chats of every shape, in 8192 and 16384 tokens."""
    return tuple(
        Case(shape=shape, num_chats=num_chats, pool_tokens=pool_tokens)
        for shape in Shape
        for num_chats in (4, 8)
        for pool_tokens in (8192, 16384)
    )


def simulate(
    case: Case,
    policy: str,
    resume_order: str,
    *,
    num_seeds: int,
    calibration: Calibration | None = None,
) -> Row:
    """Play `num_seeds` traces of the case, at least 1, parks being copies.

    Without a calibration the machine is that of `Calibration`'s defaults. Raises ValueError on an unknown policy or
    order.
    """
    calibration = calibration or Calibration()
    park = park_config(
        ParkMemory.COPIED,
        calibration,
        page_tokens=PAGE_TOKENS,
        budget_tokens=BUDGET_BYTES // calibration.token_bytes,
    )
    config = SchedulerConfig(
        num_pages=case.pool_tokens // PAGE_TOKENS,
        max_running=case.num_chats,
        victim_policy=policy,
        park=replace(park, resume_order=ResumeOrder(resume_order)),
    )
    outcomes = []
    for seed in range(num_seeds):
        trace = make_trace(case.shape, case.num_chats, window_tokens=case.pool_tokens, seed=seed)
        outcomes.append(Simulator(config, trace, calibration).run())
    return Row(case=case, policy=policy, resume_order=resume_order, outcome=mean(outcomes))


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    """Means of one or more outcomes, tokens rounded; of the longest waits, the longest."""
    count = len(outcomes)
    return Outcome(
        makespan_s=sum(one.makespan_s for one in outcomes) / count,
        mean_completion_s=sum(one.mean_completion_s for one in outcomes) / count,
        longest_wait_s=max(one.longest_wait_s for one in outcomes),
        parks=sum(one.parks for one in outcomes) / count,
        rotations=sum(one.rotations for one in outcomes) / count,
        tokens_copied=round(sum(one.tokens_copied for one in outcomes) / count),
        tokens_recomputed=round(sum(one.tokens_recomputed for one in outcomes) / count),
        tokens_generated=round(sum(one.tokens_generated for one in outcomes) / count),
    )
