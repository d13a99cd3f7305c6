"""Decoding beside the memory wall: some steps of one row between two readings of memory, again and again.

A machine's speed changes within seconds, so each stretch of steps is judged by the readings on both sides of it. The
caller's thread calls torch.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from engine.bench.memory_wall import MemoryWall
from engine.bench.step_rig import StepRig, StepTime
from engine.bench.steps import StepPlan

_WARM_STEPS = 2
"""After a reading, which leaves nothing of the model in the caches."""
_STEPS = 8
_TRIES = 2


@dataclass(frozen=True, slots=True)
class WallRound:
    """Steps of one row, and how fast memory was read just before or after them, whichever was faster."""

    steps: tuple[StepTime, ...]
    wall_bytes_s: float

    def step_bytes(self, weight_bytes: int, token_bytes: int) -> float:
        """Bytes that a step has to read: all weights, and keys and values of the context."""
        return weight_bytes + token_bytes * statistics.mean(step.rows[0][0] for step in self.steps)

    def wall_share(self, weight_bytes: int, token_bytes: int) -> float:
        """Bytes that a step has to read in a second, by what memory gives."""
        step_s = statistics.median(step.step_s for step in self.steps)
        return self.step_bytes(weight_bytes, token_bytes) / step_s / self.wall_bytes_s


def decode_by_wall(
    rig: StepRig, plan: StepPlan, wall: MemoryWall, *, rounds: int
) -> tuple[WallRound, ...]:
    """Decode one sequence after the plan's context. The rig's pool must have the plan's size."""
    num_reply = rounds * (_WARM_STEPS + _STEPS) + 2
    rig.add(plan.context_tokens, num_reply, seed=rig.num_added)
    rig.read_prompts()
    found: list[WallRound] = []
    before = wall.read_bytes_s(_TRIES)
    for _ in range(rounds):
        for _ in range(_WARM_STEPS):
            rig.step()
        steps = tuple(rig.step() for _ in range(_STEPS))
        after = wall.read_bytes_s(_TRIES)
        found.append(WallRound(steps, max(before, after)))
        before = after
    rig.clear()
    return tuple(found)
