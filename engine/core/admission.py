"""May the head of the line enter the pool now? Pure decisions, with what is missing as data.

Newcomers and parked sequences obey the same rules. The cheap question (a seat and tokens) is asked
before the dear one (pages, which needs a look into the prefix index).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.runs import WaitKind


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer: what it waits for, or None if it may enter."""

    waits_for: WaitKind | None
    pages_needed: int = 0
    pages_spare: int = 0

    @property
    def is_admitted(self) -> bool:
        return self.waits_for is None


def may_sit(num_seats: int, *, seats_taken: int, seats: int) -> Admission:
    """Whether `num_seats` more fit beside those taken."""
    return Admission(WaitKind.NO_SEAT if seats_taken + num_seats > seats else None)


def may_hold(need: int, *, spare: int, margin: int, growth: int) -> Admission:
    """Whether `need` pages fit into those that are spare, and the entrant is likely to stay.

    `margin` must be left: without it the next page that somebody fills would send the entrant out
    again. `growth` is what all in the pool and the entrant will still take, as far as their limits
    tell; where it does not fit, somebody would certainly be parked again.
    """
    if need + margin > spare:
        return Admission(WaitKind.NO_ROOM, need + margin, spare)
    if need + margin + growth > spare:
        return Admission(WaitKind.WOULD_NOT_LAST, need + margin + growth, spare)
    return Admission(None, need, spare)
