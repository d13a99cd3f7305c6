"""Why a sequence is outside the pool, and what its return depends on, as data for people. Changes nothing.

Asked by the runtime for lists and notices, not by the planning itself. Engine thread; imports no
tensor library, clock or thread.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass
from functools import cached_property

from engine.core.admission import Admission
from engine.core.config import ROTATE_BY_RECOMPUTE_AFTER_S, ResumeOrder
from engine.core.entrance import Entrance
from engine.core.forecast import Outlook, Resident
from engine.core.holdings import holdings, num_kept
from engine.core.planner import kept_for_s, owed_after_s
from engine.core.room import tokens_left
from engine.core.types import OWNS_PAGES, Party, SeqStatus, Sequence
from engine.core.yard import Yard
from engine.runs import Holder, Holding, RunState, WaitKind, WaitReason

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


_AHEAD_NAMED = 3
"""Of those before it in line, so many are named to each; naming all of them to all would grow with the square."""

_TURNS_TOLD = 32
"""Turns of the first in line that an outlook holds one by one; further back, guards add up to more than any of them."""


@dataclass(frozen=True, slots=True)
class _Turns:
    """When those in line get the room from others, as far as that is told one by one."""

    least_s: float
    """What anybody waits for a turn at the least."""
    first_s: tuple[float, ...]
    is_cut: bool
    """Whether the next one, and so all behind it, wait for somebody's end instead."""


class Explainer:
    """Answers for one moment, that after the last step planned.

    The line is ranked once, and each in it judged once at most, for all questions together: asking
    about everybody costs a walk along the line.
    """

    def __init__(self, yard: Yard, entrance: Entrance) -> None:
        self._yard = yard
        self._entrance = entrance
        self._outside = yard.lines.outside(yard.rank_at(yard.step + 1))
        self._places = {seq: place for place, seq in enumerate(self._outside, 1)}
        self._answers: dict[Sequence, Admission] = {}
        self._lacking = [0]
        """Pages lacking for the first of the line, by how many of them; grows as it is asked."""
        self._tokens = [0]
        """Tokens that they may still generate, likewise."""
        self._turns: dict[int, _Turns | None] = {}
        """By the class from which on residents give way."""

    def state(self, seq: Sequence) -> RunState | None:
        """Where it is, in a client's terms; None if it has ended."""
        if seq.is_staying:
            return RunState.AWAITS_OWNER
        if seq.status is SeqStatus.RUNNING:
            return RunState.WRITING if seq.is_generating else RunState.READING
        if seq.status is SeqStatus.PARKED and seq.started_s is None:
            return RunState.QUEUED  # it follows another, and has not begun
        return _STATES.get(seq.status)

    def place(self, seq: Sequence) -> int:
        """1 for the next to enter; 0 if it stands in no line: in the pool, ended, or held by hand."""
        return self._places.get(seq, 0)

    def holdings(self) -> tuple[Holding, ...]:
        """Who holds which share of the pool."""
        lines = self._yard.lines
        return holdings(seq for status in OWNS_PAGES for seq in lines[status])

    def num_kept(self, seq: Sequence) -> int:
        """Pages kept for it outside the pool's account; 0 unless it is parked and its state was kept."""
        return num_kept(self._yard.pool, seq) if seq.status is SeqStatus.PARKED else 0

    def wait_reason(self, seq: Sequence) -> WaitReason | None:
        """Why it is outside the pool; None if it is not."""
        if seq.status in (SeqStatus.RUNNING, SeqStatus.STAYING, SeqStatus.FINISHED):
            return None
        place = self.place(seq)
        ahead = self._outside[: min(max(place - 1, 0), _AHEAD_NAMED)]
        kind, needed, spare = self._kind(seq, place)
        return WaitReason(
            kind=kind,
            place=place,
            ahead_ids=tuple(one.request_id for one in ahead),
            pages_needed=needed,
            pages_spare=spare,
            holders=self._holders,
        )

    def outlook(self, seq: Sequence) -> Outlook | None:
        """What an estimate of its wait starts from; None if it stands in no line."""
        place = self.place(seq)
        if not place:
            return None
        self._add_up(place)
        seats = self._yard.num_seated + place - self._yard.config.seats
        wants_seat = seats > 0 and seq.parked is None
        turns_s = self._turns_s(seq, place, priority=seq.priority + wants_seat)
        return Outlook(
            pages_lacking=self._lacking[place],
            seats_lacking=max(seats, 0),
            residents=self._residents,
            ahead_tokens=self._tokens[place - 1],
            turns_s=turns_s,
            more_turns=place - len(turns_s) if turns_s else 0,
        )

    def _add_up(self, place: int) -> None:
        """Make the sums reach to that place."""
        for one in self._outside[len(self._lacking) - 1 : place]:
            lacking = self._lacking[-1]
            party = one.party if one.parked is not None else (one,)
            if one is party[0]:
                answer = self._judge(party)
                lacking += max(answer.pages_needed - (answer.pages_spare if not lacking else 0), 0)
            self._lacking.append(lacking)
            self._tokens.append(self._tokens[-1] + tokens_left(self._yard, one))

    def _judge(self, party: Party) -> Admission:
        first = party[0]
        if first not in self._answers:
            self._answers[first] = self._entrance.judge(party)
        return self._answers[first]

    def _turns_s(self, seq: Sequence, place: int, *, priority: int) -> tuple[float, ...]:
        """Seconds until each of the first in line gets the room; empty where nobody of the class gives way to it.

        For somebody further back those of the first ones and its own.
        """
        if priority not in self._turns:
            self._turns[priority] = self._turns_of_first(priority)
        turns = self._turns[priority]
        if turns is None or place <= len(turns.first_s):
            return turns.first_s[:place] if turns is not None else ()
        return () if turns.is_cut else (*turns.first_s, self._turn_s(seq, turns.least_s))

    def _turns_of_first(self, priority: int) -> _Turns | None:
        """The turns of the first in line, up to one to whom those who may give way would not leave room enough."""
        yard = self._yard
        residents = yard.running_parties()
        parties = [one for one in residents if not one[0].is_pinned and one[0].priority >= priority]
        is_by_turns = yard.config.park.resume_order is ResumeOrder.HEAD
        if not (parties and yard.can_park and is_by_turns):
            return None
        keeps_state = any(map(yard.keeper.can_keep, parties))
        least_s = 0.0 if keeps_state else ROTATE_BY_RECOMPUTE_AFTER_S
        kept = sorted(
            (kept_for_s(one, yard.now_s), sum(len(seq.page_table) for seq in one))
            for one in parties
        )
        turns_s: list[float] = []
        for one in self._outside[:_TURNS_TOLD]:
            answer = self._judge(one.party if one.parked is not None else (one,))
            room_s = _until_room(kept, answer.pages_needed - answer.pages_spare)
            if room_s is None and len(parties) == len(residents):
                room_s = kept[-1][0]  # alone it needs no margin
            if room_s is None:
                return _Turns(least_s, tuple(turns_s), is_cut=True)
            turn_s = self._turn_s(one, least_s)
            turns_s.append(turn_s if one.call else max(turn_s, room_s))
        return _Turns(least_s, tuple(turns_s), is_cut=False)

    def _turn_s(self, seq: Sequence, least_s: float) -> float:
        first_s = self._yard.config.park.rotate_after_s
        owed_s = 0.0 if seq.call else max(owed_after_s(seq, first_s), least_s)
        return max(owed_s - seq.stretch_s(self._yard.now_s), 0.0)

    def _kind(self, seq: Sequence, place: int) -> tuple[WaitKind, int, int]:
        """What it waits for, with pages needed and spare where that is about pages."""
        if seq.is_staying:
            return WaitKind.OWNER, 0, 0
        if seq.status in _IN_TRANSFER:
            return _IN_TRANSFER[seq.status], 0, 0
        if seq.is_held:
            return WaitKind.HELD_BY_USER, 0, 0
        if not place:
            failed = seq.parked is not None and seq.parked.num_fails
            return WaitKind.RESTORE_FAILED if failed else WaitKind.BEHIND_SIBLINGS, 0, 0
        head = self._outside[0]
        party = seq.party if seq.parked is not None else (seq,)
        answer = self._judge(party)
        if seq is not head and head not in party:
            return WaitKind.BEHIND_OTHERS, answer.pages_needed, answer.pages_spare
        kind = answer.waits_for or WaitKind.ENTERS_NEXT
        return kind, answer.pages_needed, answer.pages_spare

    @cached_property
    def _residents(self) -> tuple[Resident, ...]:
        yard = self._yard
        return tuple(Resident(len(one.page_table), tokens_left(yard, one)) for one in yard.running)

    @cached_property
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


def _until_room(kept: Seq[tuple[float, int]], lacking: int) -> float | None:
    """Seconds until those have left who make up for the pages that are lacking; None if all of them are not enough.

    Of each of them: for how long it keeps its room, the shortest first, and its pages.
    """
    for kept_s, pages in kept:
        lacking -= pages
        if lacking <= 0:
            return kept_s
    return None
