"""Figures that were measured, with what there is to know of their spread. Pure arithmetic.

Times and speeds are medians of several samples; what is compared is compared pair by pair.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie, between two of them if need be.

    Raises ValueError without values, or on a share that is none.
    """
    if not values or not 0 <= share <= 1:
        raise ValueError(f"no share {share} of {len(values)} values can be told")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Each of ours by what was measured beside it. Raises ValueError without pairs or by a zero."""
    if len(ours) != len(theirs) or not ours:
        raise ValueError(f"{len(ours)} and {len(theirs)} values make no pairs")
    if not all(theirs):
        raise ValueError("one of the values to compare with is 0")
    return tuple(one / other for one, other in zip(ours, theirs, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a figure is meant to reach: at least or at most so much."""

    bound: float
    is_least: bool = True

    def is_met(self, value: float) -> bool:
        return value >= self.bound if self.is_least else value <= self.bound


@dataclass(frozen=True, slots=True)
class Figure:
    """Something that was measured, once or several times; `samples` is never empty."""

    name: str
    unit: str
    samples: tuple[float, ...]
    goal: Goal | None = None
    note: str = ""
    """What the figure was made from, in a few words."""

    def __post_init__(self) -> None:
        if not self.samples:
            raise ValueError(f"{self.name} was never measured")

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def low(self) -> float:
        return min(self.samples)

    @property
    def high(self) -> float:
        return max(self.samples)

    @property
    def is_met(self) -> bool | None:
        """Whether the median reaches the goal; None where there is none."""
        return None if self.goal is None else self.goal.is_met(self.median)
