"""Counts steps and their seconds by kind, for metrics and for measuring a server by its own steps. Engine thread."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.core.types import StepRow
from engine.runs import StepCount


@dataclass(slots=True)
class _Sums:
    steps: int = 0
    seconds: float = 0.0
    prompt_tokens: int = 0
    context_tokens: int = 0


class StepTally:
    """Of one model, since it was loaded."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, bool], _Sums] = {}

    def add(
        self, rows: Iterable[StepRow], *, num_replies: int, prompt_tokens: int, seconds: float
    ) -> None:
        """A step of these rows, so many tokens of replies and of prompts, took so long."""
        kind = (num_replies, prompt_tokens > 0)
        sums = self._kinds.get(kind)
        if sums is None:
            sums = self._kinds[kind] = _Sums()
        sums.steps += 1
        sums.seconds += seconds
        sums.prompt_tokens += prompt_tokens
        for row in rows:
            sums.context_tokens += row.start * row.count

    def counts(self) -> tuple[StepCount, ...]:
        """Each kind that has occurred."""
        return tuple(
            StepCount(
                replies=replies,
                has_prompts=has_prompts,
                steps=sums.steps,
                seconds=sums.seconds,
                prompt_tokens=sums.prompt_tokens,
                context_tokens=sums.context_tokens,
            )
            for (replies, has_prompts), sums in sorted(self._kinds.items())
        )
