"""Ends those who have waited as long as they would, and tells when time alone will change something.

Part of the Scheduler (engine thread); reads no clock: the time is the yard's.
"""

from __future__ import annotations

from engine.core.parked import EndReason
from engine.core.parking import Parking
from engine.core.types import WAITS, SeqStatus, Sequence
from engine.core.yard import Yard


class Patience:
    """Knows the sequences that have a longest wait; see `Sequence.max_wait_s`."""

    def __init__(self, yard: Yard, parking: Parking) -> None:
        self._yard = yard
        self._parking = parking
        self._limited: dict[Sequence, None] = {}

    def watch(self, seq: Sequence) -> None:
        """Take note of a new sequence."""
        if seq.max_wait_s is not None:
            self._limited[seq] = None

    def end_impatient(self) -> None:
        """End whoever stands outside the pool and has waited long enough in all."""
        for seq in tuple(self._limited):
            if seq.has_ended:
                del self._limited[seq]
            elif seq.status in WAITS and self._deadline_s(seq) <= self._yard.now_s:
                self._parking.end_all((seq,), EndReason.WAITED_TOO_LONG)

    def wake_s(self) -> float | None:
        """The next moment at which somebody's patience ends or a restore is tried again."""
        moments = [self._deadline_s(seq) for seq in self._limited if seq.status in WAITS]
        for seq in self._yard.lines[SeqStatus.PARKED]:
            if seq.parked is not None and seq.parked.num_fails:
                moments.append(seq.parked.retry_s)
        return min(moments, default=None)

    def _deadline_s(self, seq: Sequence) -> float:
        now_s = self._yard.now_s
        assert seq.max_wait_s is not None
        return now_s + seq.max_wait_s - seq.waited_s(now_s)
