"""Who waits, runs or is parked, and in which order. Owned by the Scheduler (engine thread); moves nobody by itself."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from itertools import islice

from engine.core.config import PATIENCE_STEP_S, PRIORITY_STEP_S, ResumeOrder
from engine.core.types import SeqStatus, Sequence
from engine.core.victim_policies import ResumeKey, longest_parked


class Lines:
    """One line for each status but FINISHED, ordered by (priority, arrival); every live sequence stands in one.

    Those outside the pool, parked or waiting, are ranked anew at every question, since waiting
    moves them up: see `Rank`.
    """

    def __init__(self) -> None:
        self._by_id: dict[str, Sequence] = {}
        self._lines: dict[SeqStatus, list[Sequence]] = {
            status: [] for status in SeqStatus if status is not SeqStatus.FINISHED
        }
        self.running = self._lines[SeqStatus.RUNNING]
        """The line of those who take part in steps."""
        self._parked = self._lines[SeqStatus.PARKED]
        self._waiting = self._lines[SeqStatus.WAITING]
        self._preferred: dict[Sequence, None] = {}
        """Those called by hand or made room for: in the line of their class others may stand before them."""
        self._num_calls = 0

    def __getitem__(self, status: SeqStatus) -> list[Sequence]:
        """The line itself, first one first; changed by `add`, `move` and `set_priority` only."""
        return self._lines[status]

    @property
    def live(self) -> tuple[Sequence, ...]:
        """Every sequence that has not ended, in order of `add`."""
        return tuple(self._by_id.values())

    @property
    def num_live(self) -> int:
        return len(self._by_id)

    @property
    def is_empty(self) -> bool:
        return not self._by_id

    @property
    def has_outside(self) -> bool:
        """Whether anybody is parked or waits."""
        return bool(self._parked or self._waiting)

    def find(self, request_id: str) -> Sequence | None:
        """The live sequence of that id."""
        return self._by_id.get(request_id)

    def add(self, seq: Sequence) -> None:
        """Take in a sequence. Raises ValueError if its id is alive."""
        if seq.request_id in self._by_id:
            raise ValueError(f"{seq.request_id} is already alive")
        self._by_id[seq.request_id] = seq
        self._insert(seq)

    def move(self, seq: Sequence, status: SeqStatus) -> None:
        """Change the status, and the line with it; FINISHED leaves. Raises ValueError on a move that is not legal."""
        line = self._lines[seq.status]
        seq.move_to(status)
        line.remove(seq)
        if status is SeqStatus.FINISHED:
            del self._by_id[seq.request_id]
        else:
            self._insert(seq)

    def set_priority(self, seq: Sequence, priority: int) -> None:
        """Change a live sequence's priority, and its place with it."""
        self._lines[seq.status].remove(seq)
        seq.priority = priority
        self._insert(seq)

    def call(self, seq: Sequence) -> None:
        """Put a sequence outside the pool before everybody else there, those called earlier included."""
        self._num_calls += 1
        seq.call = -self._num_calls
        self._preferred[seq] = None

    def make_room_for(self, seq: Sequence) -> None:
        """Somebody leaves the pool so that it can enter: nobody but those called goes before it."""
        seq.is_made_room_for = True
        self._preferred[seq] = None

    def head(self, rank: Rank) -> Sequence | None:
        """Who is next to enter the pool; None if nobody may."""
        return min(self._front(rank), key=rank.key, default=None)

    def outside(self, rank: Rank) -> list[Sequence]:
        """All who may enter, the head first."""
        return sorted(filter(rank.may_enter, self._parked + self._waiting), key=rank.key)

    def check(self) -> None:
        """Recount. Raises AssertionError on a sequence out of order, in a wrong line or in none."""
        standing = {seq.request_id: seq for line in self._lines.values() for seq in line}
        counts = {status.value: len(line) for status, line in self._lines.items()}
        assert standing == self._by_id, f"{counts} stand in line, {len(self._by_id)} are alive"
        assert sum(counts.values()) == len(standing), f"somebody stands twice: {counts}"
        for status, line in self._lines.items():
            keys = [seq.line_key for seq in line]
            assert keys == sorted(keys), f"{status.value}: out of order: {keys}"
            strays = [seq.request_id for seq in line if seq.status is not status]
            assert not strays, f"{strays} stand among the {status.value}, which they are not"

    def _insert(self, seq: Sequence) -> None:
        insort(self._lines[seq.status], seq, key=_line_key)

    def _front(self, rank: Rank) -> list[Sequence]:
        """Those of whom one is the head: all who are parked, the first of each class who waits, and the preferred."""
        front = [seq for seq in self._parked if rank.may_enter(seq)]
        waiting, start = self._waiting, 0
        while start < len(waiting):
            end = bisect_right(
                waiting, waiting[start].priority, start, key=lambda seq: seq.priority
            )
            front += islice(filter(rank.may_enter, islice(waiting, start, end)), 1)
            start = end
        for seq in tuple(self._preferred):
            if seq.has_ended or not (seq.call or seq.is_made_room_for):
                del self._preferred[seq]
            elif seq.status is SeqStatus.WAITING and rank.may_enter(seq):
                front.append(seq)
        return front


@dataclass(frozen=True, slots=True)
class Rank:
    """The order of those outside the pool at one moment.

    First who is called by hand, then for whom room is being made, then by priority, the parked
    before those who wait, and in the policy's order.

    Waiting moves up: each `PRIORITY_STEP_S` is worth a class of priority, and of the same class,
    each `PATIENCE_STEP_S` is worth more than the policy's order. So nobody waits for ever, neither
    behind a stream of requests that matter more nor behind old ones that keep taking turns.
    """

    now_s: float
    step: int
    resume_key: ResumeKey
    resume_order: ResumeOrder
    seatless_class: float
    """Newcomers of this class and of less important ones find no seat; infinite where everybody finds one."""
    aside: frozenset[Sequence] = frozenset()
    """Those who let others pass in this step."""

    def may_enter(self, seq: Sequence) -> bool:
        """Not held by hand, not parked in this very step or to be tried later, not parted from parked siblings."""
        if seq.is_held or seq in self.aside:
            return False
        if seq.parked is not None:
            return seq.parked.step < self.step and seq.parked.retry_s <= self.now_s
        return seq.family is None or not seq.family.is_out

    def priority(self, seq: Sequence) -> int:
        """Its class, the time it has been outside in this stretch counted in."""
        return seq.priority - int(seq.stretch_s(self.now_s) // PRIORITY_STEP_S)

    def key(self, seq: Sequence) -> tuple[float, ...]:
        """The smallest is the head; newcomers without a seat keep no parked one waiting."""
        is_newcomer = seq.parked is None and not seq.call
        is_seatless = is_newcomer and seq.priority >= self.seatless_class
        is_next = seq.is_made_room_for and not is_seatless
        front = (seq.call, not is_next, is_seatless, self.priority(seq))
        if seq.parked is None:
            return (*front, 1, seq.arrival)
        if self.resume_order is ResumeOrder.PASS:
            return (*front, 0, -seq.num_parks, *longest_parked(seq))
        patience = int(seq.stretch_s(self.now_s) // PATIENCE_STEP_S)
        return (*front, 0, -patience, *self.resume_key(seq))


def _line_key(seq: Sequence) -> tuple[int, int]:
    return seq.line_key
