"""What the planner of parks costs where nothing is parked. Pure Python, no model: the steps compute nothing.

The same decoding steps are planned as a whole with the planner and without it, by turns; what they differ by is its
price. Most steps of an engine are planned at one look (`engine.core.steady`), where it has no part and no price.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from engine.core.config import PAGE_TOKENS, Knobs, ParkConfig, ParkMemory, SchedulerConfig
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence

_PROMPT_TOKENS = 512
_STEPS_A_TURN = 25
_NEVER = 1 << 62
"""The so-manieth park is told to fail: any knob makes every plan a whole one."""


def time_planner(num_sequences: int, *, turns: int) -> tuple[float, ...]:
    """Seconds that the planner adds to a whole plan for so many sequences, a sample for each pair of turns.

    Single samples may be below 0: the price is near what a clock can tell.
    """
    num_steps = turns * _STEPS_A_TURN
    with_it = _plan_steps(num_sequences, num_steps, is_planner_on=True)
    without = _plan_steps(num_sequences, num_steps, is_planner_on=False)
    return tuple(_turn(with_it) - _turn(without) for _ in range(turns))


def _turn(steps: Iterator[float]) -> float:
    return statistics.median(next(steps) for _ in range(_STEPS_A_TURN))


def _plan_steps(num_sequences: int, num_steps: int, *, is_planner_on: bool) -> Iterator[float]:
    """Seconds that each plan takes, once all prompts are read."""
    most = _PROMPT_TOKENS + num_steps + num_sequences + PAGE_TOKENS
    config = SchedulerConfig(
        num_pages=num_sequences * (most // PAGE_TOKENS + 1),
        max_running=num_sequences,
        step_tokens=_PROMPT_TOKENS,
        park=ParkConfig(
            memory=ParkMemory.IN_PLACE,
            page_bytes=PAGE_TOKENS,
            budget_bytes=num_sequences * most,
        ),
        knobs=Knobs(is_planner_on=is_planner_on, fail_save=_NEVER),
    )
    scheduler = Scheduler(config)
    for index in range(num_sequences):
        scheduler.add(
            Sequence(
                request_id=f"bench{index}",
                token_ids=[index + 1] * _PROMPT_TOKENS,
                num_prompt=_PROMPT_TOKENS,
                max_new_tokens=num_steps + num_sequences + 1,
                eos_ids=frozenset(),
                priority=1,
                arrival=index,
                arrival_s=0.0,
            )
        )
    while True:
        start = time.perf_counter()
        batch = scheduler.schedule(0.0)
        seconds = time.perf_counter() - start
        scheduler.update(batch, [0] * len(batch.sampling_rows), 0.0)
        if batch.num_tokens == num_sequences:
            yield seconds
