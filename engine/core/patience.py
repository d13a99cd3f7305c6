"""Ends those who have waited as long as they would, and tells when time alone will change something.

Part of the Scheduler (engine thread); reads no clock: the time is the yard's.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from engine.core.parked import EndReason
from engine.core.parking import Parking
from engine.core.types import WAITS, SeqStatus, Sequence
from engine.core.yard import Yard

_SLACK_S = 1e-3
"""Sums of the same moments differ in their last digits."""

_FEW = 16
"""So many of those who have ended may always stay."""


class Patience:
    """Knows the sequences that have a longest wait; see `Sequence.max_wait_s`.

    They lie in a heap by a moment before which none of them can have waited long enough: time in the
    pool only puts it off. So a step looks at those whose moment has come, and not along the line.
    """

    def __init__(self, yard: Yard, parking: Parking) -> None:
        self._yard = yard
        self._parking = parking
        self._limited: list[tuple[float, int, Sequence]] = []
        self._num_seen = self._num_judged = 0

    def watch(self, seq: Sequence) -> None:
        """Take note of a new sequence."""
        if seq.max_wait_s is not None:
            self._num_seen += 1
            heappush(self._limited, (self._deadline_s(seq), self._num_seen, seq))

    def end_impatient(self) -> None:
        """End whoever stands outside the pool and has waited long enough in all.

        Newcomers are judged from their second step on: the first one may let them in, and reading a prompt takes
        longer than some would wait.
        """
        self._forget_ended()
        now_s, early = self._yard.now_s, []
        while self._limited and self._limited[0][0] <= now_s + _SLACK_S:
            _, number, seq = heappop(self._limited)
            if seq.has_ended or seq.is_staying:
                continue
            is_new = number > self._num_judged
            if seq.status in WAITS and self._deadline_s(seq) <= now_s and not is_new:
                self._parking.end_all((seq,), EndReason.WAITED_TOO_LONG)
            else:
                early.append((self._deadline_s(seq), number, seq))
        for one in early:
            heappush(self._limited, one)
        self._num_judged = self._num_seen

    def wake_s(self) -> float | None:
        """The next moment at which somebody's patience ends or a restore is tried again."""
        moments = [self._deadline_s(seq) for *_, seq in self._limited if _waits(seq)]
        for seq in self._yard.lines[SeqStatus.PARKED]:
            if seq.parked is not None and seq.parked.num_fails:
                moments.append(seq.parked.retry_s)
        return min(moments, default=None)

    def _forget_ended(self) -> None:
        """Let go of those who have ended once they are as many as the living: their tokens would stay in memory."""
        if len(self._limited) > 2 * self._yard.lines.num_live + _FEW:
            self._limited = [one for one in self._limited if not one[2].has_ended]
            heapify(self._limited)

    def _deadline_s(self, seq: Sequence) -> float:
        now_s = self._yard.now_s
        assert seq.max_wait_s is not None
        return now_s + seq.max_wait_s - seq.waited_s(now_s)


def _waits(seq: Sequence) -> bool:
    return seq.status in WAITS and not seq.is_staying
