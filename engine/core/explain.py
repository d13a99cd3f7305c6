"""Why a sequence is outside the pool, and what its return depends on, as data for people. Changes nothing.

Asked by the runtime for lists and notices, not by the planning itself. Engine thread; imports no
tensor library, clock or thread.
"""

from __future__ import annotations

from engine.core.cost_model import Outlook, Resident
from engine.core.entrance import Entrance
from engine.core.planner import owed_after_s
from engine.core.room import final_tokens
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
        residents = tuple(
            Resident(
                pages=len(one.page_table),
                tokens_left=final - len(one.token_ids) if final > len(one.token_ids) else None,
            )
            for one in yard.running
            if (final := final_tokens(yard, one))
        )
        first_s = yard.config.park.rotate_after_s
        turns_s = sum(owed_after_s(one, first_s) for one in self._outside[:place])
        return Outlook(turns_s=turns_s, pages_lacking=lacking, residents=residents)

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
