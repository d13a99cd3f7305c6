"""What other chats notice of a park: gaps between pieces of text at a park or a restore, beside all others. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.bench.figures import percentile
from studio.bench.stream import Reply

_MOVES = ("preempted", "resumed")
_BLUR_S = 0.002
"""A note and the pieces of text of the same step are read so far apart at most."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Gaps in seconds between pieces of text of chats that stayed in the pool."""

    usual_s: tuple[float, ...]
    at_moves_s: tuple[float, ...]
    """During these somebody else was parked or restored."""

    @property
    def ratio(self) -> float:
        """The 99th percentile at parks and restores by the usual one. Raises ValueError without gaps of both kinds."""
        return percentile(self.at_moves_s, 0.99) / percentile(self.usual_s, 0.99)


def split_gaps(replies: Sequence[Reply]) -> Gaps:
    """Gaps since the last prompt was read; those in which a chat was itself parked belong to no kind."""
    begins_s = max((r.token_times_s[0] for r in replies if r.token_times_s), default=0.0)
    usual: list[float] = []
    at_moves: list[float] = []
    for reply in replies:
        own = sorted(_moves([reply]))
        others = sorted(_moves(other for other in replies if other is not reply))
        for start, end in reply.gaps:
            if start < begins_s or _is_any_within(own, start, end):
                continue
            kind = at_moves if _is_any_within(others, start, end) else usual
            kind.append(end - start)
    return Gaps(tuple(usual), tuple(at_moves))


def _moves(replies: Iterable[Reply]) -> list[float]:
    return [at_s for reply in replies for at_s, note in reply.notes if note in _MOVES]


def _is_any_within(times: Sequence[float], start: float, end: float) -> bool:
    place = bisect_left(times, start - _BLUR_S)
    return place < len(times) and times[place] <= end + _BLUR_S
