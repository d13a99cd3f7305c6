"""What the simulator makes of the chats that the scenarios send: how fast they could be were parking free. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.core.config import PAGE_TOKENS, ParkMemory, SchedulerConfig
from engine.core.cost_model import Calibration
from engine.sim.simulator import Simulator, park_config
from engine.sim.traces import Arrival, Trace

_FREE_S = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Chats that are sent together; all replies have the length that is asked for."""

    prompt_tokens: tuple[int, ...]
    reply_tokens: int
    pool_tokens: int
    step_tokens: int
    budget_bytes: int


def bound_tokens_s(load: Load, calibration: Calibration) -> float:
    """Generated tokens per second where steps take what the calibration says and parks nothing."""
    free = replace(calibration, park_s=_FREE_S)
    park = park_config(
        ParkMemory.IN_PLACE,
        free,
        page_tokens=PAGE_TOKENS,
        budget_tokens=load.budget_bytes // free.token_bytes,
    )
    config = SchedulerConfig(
        num_pages=load.pool_tokens // PAGE_TOKENS,
        max_running=len(load.prompt_tokens),
        step_tokens=load.step_tokens,
        park=park,
    )
    arrivals = tuple(
        Arrival(at_s=0.0, prompt_tokens=tokens, reply_tokens=load.reply_tokens, is_limited=True)
        for tokens in load.prompt_tokens
    )
    outcome = Simulator(config, Trace(name="bench", arrivals=arrivals), free).run()
    return outcome.tokens_generated / outcome.makespan_s
