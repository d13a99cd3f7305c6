"""Sequences that have ended and are kept for their owner's answer: how long, and who goes on with them.

One that stays has given up its seat and keeps its pages. It is the first to leave when others need room (see
`Parking.lend`), and leaves by itself after a grace; then it is kept like one that was parked by hand. Part of the
Scheduler (engine thread); reads no clock: the time is the yard's.
"""

from __future__ import annotations

from engine.core.parked import Fate, ParkedState
from engine.core.parking import Parking
from engine.core.types import SeqStatus, Sequence
from engine.core.yard import Yard
from engine.runs import ParkCause, ParkReason


class Stays:
    """Works on the yard through the parking."""

    def __init__(self, yard: Yard, parking: Parking) -> None:
        self._yard = yard
        self._parking = parking
        self._staying: dict[Sequence, None] = {}
        """Those who stay, the longest first; some may have ended."""

    def end(self, seq: Sequence) -> None:
        """A running sequence has said all: it stays if it is to, else it is gone."""
        if seq.stay is None or seq.family is not None:
            self._parking.end(seq)
            return
        seq.stays_since_s, seq.is_held, seq.wants_park = self._yard.now_s, True, False
        self._yard.lines.move(seq, SeqStatus.STAYING)
        self._staying[seq] = None

    def keep_time(self) -> None:
        """End whoever has stayed as long as it may, and lend out the room of those whose grace is over."""
        now_s = self._yard.now_s
        for seq in self._alive():
            grace_s, end_s = _moments(seq)
            if end_s <= now_s:
                self._parking.end(seq)
            elif seq.status is SeqStatus.STAYING and grace_s <= now_s:
                self._parking.lend_room_of(seq)

    def wake_s(self) -> float | None:
        """The next moment at which `keep_time` has something to do."""
        moments = []
        for seq in self._alive():
            grace_s, end_s = _moments(seq)
            moments.append(min(grace_s, end_s) if seq.status is SeqStatus.STAYING else end_s)
        return min(moments, default=None)

    def follow(self, seq: Sequence, earlier_id: str) -> bool:
        """Put a new sequence at the head of the line with what is kept of one that stays. False: none of that id does.

        It stands there as one that is parked and has not started. While the pages of the other are being copied out it
        takes over nothing, and finds what the prefix index knows of them.
        """
        yard = self._yard
        old = yard.lines.find(earlier_id)
        if old is None or not old.is_staying:
            return False
        num_pages = self._take_over(old, seq)
        self._parking.end(old)
        fate = Fate.SWAP if num_pages else Fate.RECOMPUTE
        reason = ParkReason(cause=ParkCause.OWNER_AWAY)
        seq.status = SeqStatus.PARKED
        seq.parked = ParkedState(yard.now_s, yard.step, fate, reason, len(seq.token_ids))
        yard.lines.add(seq)
        yard.lines.call(seq)
        return True

    # --- how

    def _alive(self) -> tuple[Sequence, ...]:
        for seq in [one for one in self._staying if one.has_ended]:
            del self._staying[seq]
        return tuple(self._staying)

    def _take_over(self, old: Sequence, new: Sequence) -> int:
        """Make what is kept of one sequence the other's, as far as their tokens agree; how many pages that is.

        Up to where they part, or whole pages only: what follows in a page that others may find is not written over.
        """
        yard = self._yard
        if old.status is SeqStatus.STAYING:
            yard.pool.lay_down(old.page_table)
            yard.lines.move(old, SeqStatus.PARKED)
        elif (
            old.status is not SeqStatus.PARKED
            or old.parked is None
            or old.parked.fate is not Fate.SWAP
        ):
            return 0
        size = yard.config.page_tokens
        agreed = _num_agreed(old.token_ids[: old.num_computed], new.token_ids[:-1])
        is_whole = agreed == old.num_computed
        num_pages = yard.pool.pages_for(agreed) if is_whole else agreed // size
        yard.keeper.hand_over(old, new, num_pages)
        new.num_computed = min(agreed, num_pages * size)
        new.num_published = min(old.num_published, num_pages)
        new.parks_in_step = old.parks_in_step
        return num_pages


def _moments(seq: Sequence) -> tuple[float, float]:
    """When the grace of one that stays is over, and when it is kept no longer."""
    assert seq.stay is not None
    assert seq.stays_since_s is not None
    return seq.stays_since_s + seq.stay.grace_s, seq.stays_since_s + seq.stay.longest_s


def _num_agreed(one: list[int], other: list[int]) -> int:
    """How many tokens two lists begin with that are the same."""
    end = min(len(one), len(other))
    if one[:end] == other[:end]:
        return end
    return next(at for at in range(end) if one[at] != other[at])
