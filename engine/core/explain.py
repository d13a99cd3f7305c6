"""Why a sequence is outside the pool, and what its return depends on, as data for people. Changes nothing.

Asked by the runtime for lists and notices, not by the planning itself. Engine thread; imports no
tensor library, clock or thread.
"""

from __future__ import annotations

from engine.core.config import ROTATE_BY_RECOMPUTE_AFTER_S, ResumeOrder
from engine.core.cost_model import Outlook, Resident
from engine.core.entrance import Entrance
from engine.core.planner import owed_after_s
from engine.core.room import tokens_left
from engine.core.types import SeqStatus, Sequence
from engine.core.yard import Yard
from engine.runs import Holder, RunState, WaitKind, WaitReason

_STATES = {
    SeqStatus.WAITING: RunState.QUEUED,
    SeqStatus.PARKING: RunState.BEING_PARKED,
    SeqStatus.PARKED: RunState.PARKED,
    SeqStatus.RESTORING: RunState.BEING_RESTORED,
}

_IN_TRANSFER = {
    SeqStatus.PARKING: WaitKind.BEING_SAVED,
    SeqStatus.RESTORING: WaitKind.BEING_RESTORED,
}


class Explainer:
    """Answers for the moment after the last step planned; the line is ranked once for all questions."""

    def __init__(self, yard: Yard, entrance: Entrance) -> None:
        self._yard = yard
        self._entrance = entrance
        self._outside = yard.lines.outside(yard.rank_at(yard.step + 1))

    def state(self, seq: Sequence) -> RunState | None:
        """Where it is, in a client's terms; None if it has ended."""
        if seq.status is SeqStatus.RUNNING:
            return RunState.WRITING if seq.is_generating else RunState.READING
        return _STATES.get(seq.status)

    def place(self, seq: Sequence) -> int:
        """1 for the next to enter; 0 if it stands in no line: in the pool, ended, or held by hand."""
        return self._outside.index(seq) + 1 if seq in self._outside else 0

    def wait_reason(self, seq: Sequence) -> WaitReason | None:
        """Why it is outside the pool; None if it is not."""
        if seq.status in (SeqStatus.RUNNING, SeqStatus.FINISHED):
            return None
        place = self.place(seq)
        ahead = self._outside[: max(place - 1, 0)]
        kind, needed, spare = self._kind(seq, place)
        return WaitReason(
            kind=kind,
            place=place,
            ahead_ids=tuple(one.request_id for one in ahead),
            pages_needed=needed,
            pages_spare=spare,
            holders=self._holders(),
        )

    def outlook(self, seq: Sequence) -> Outlook | None:
        """What an estimate of its wait starts from; None if it stands in no line."""
        place = self.place(seq)
        if not place:
            return None
        yard = self._yard
        lacking = 0
        for one in self._outside[:place]:
            party = one.party if one.parked is not None else (one,)
            if one is party[0]:
                answer = self._entrance.judge(party)
                lacking += max(answer.pages_needed - (answer.pages_spare if not lacking else 0), 0)
        seats = yard.num_seated + place - yard.config.seats
        gives_way = seq.parked is not None or seats <= 0  # newcomers wait for a seat
        return Outlook(
            pages_lacking=lacking,
            seats_lacking=max(seats, 0),
            residents=tuple(
                Resident(len(one.page_table), tokens_left(yard, one)) for one in yard.running
            ),
            ahead_tokens=sum(tokens_left(yard, one) for one in self._outside[: place - 1]),
            turns_s=self._turns_s(seq, place) if gives_way else (),
        )

    def _turns_s(self, seq: Sequence, place: int) -> tuple[float, ...]:
        """Seconds until each of the first in line is owed the room; empty where nobody in the pool would give way."""
        yard, park = self._yard, self._yard.config.park
        parties = [
            one
            for one in yard.running_parties()
            if not one[0].is_pinned and one[0].priority >= seq.priority
        ]
        if not (parties and yard.can_park and park.resume_order is ResumeOrder.HEAD):
            return ()
        keeps_state = any(map(yard.keeper.can_keep, parties))
        least_s = 0.0 if keeps_state else ROTATE_BY_RECOMPUTE_AFTER_S
        turns_s = []
        for one in self._outside[:place]:
            owed_s = 0.0 if one.call else max(owed_after_s(one, park.rotate_after_s), least_s)
            turns_s.append(max(owed_s - one.stretch_s(yard.now_s), 0.0))
        return tuple(turns_s)

    def _kind(self, seq: Sequence, place: int) -> tuple[WaitKind, int, int]:
        """What it waits for, with pages needed and spare where that is about pages."""
        if seq.status in _IN_TRANSFER:
            return _IN_TRANSFER[seq.status], 0, 0
        if seq.is_held:
            return WaitKind.HELD_BY_USER, 0, 0
        if not place:
            failed = seq.parked is not None and seq.parked.num_fails
            return WaitKind.RESTORE_FAILED if failed else WaitKind.BEHIND_SIBLINGS, 0, 0
        head = self._outside[0]
        party = seq.party if seq.parked is not None else (seq,)
        answer = self._entrance.judge(party)
        if seq is not head and head not in party:
            return WaitKind.BEHIND_OTHERS, answer.pages_needed, answer.pages_spare
        kind = answer.waits_for or WaitKind.ENTERS_NEXT
        return kind, answer.pages_needed, answer.pages_spare

    def _holders(self) -> tuple[Holder, ...]:
        holders = (
            Holder(
                request_id=seq.request_id,
                held_tokens=len(seq.token_ids),
                pages=len(seq.page_table),
            )
            for seq in self._yard.running
        )
        return tuple(sorted(holders, key=lambda one: (-one.pages, one.request_id)))
