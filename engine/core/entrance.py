"""Lets sequences into the pool, the head of the line first, and makes residents give way to a head that waits long.

Nobody passes the head. Once it has waited for some seconds (see `owed_after_s`), or has been called
by hand, it is *owed* the room: residents are rotated out for it, and that the others will grow is no
reason to keep it waiting any more. Part of the Scheduler (engine thread); imports no tensor library, clock or thread.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace

from engine.core.admission import Admission, may_hold, may_sit
from engine.core.budget import tokens_for_entrant
from engine.core.config import ROTATE_BY_RECOMPUTE_AFTER_S, ResumeOrder
from engine.core.parked import EndReason
from engine.core.parking import Parking
from engine.core.planner import choose_rotation, may_be_rotated, owed_after_s
from engine.core.room import growth, margin, pages_to_enter, planned_to_enter, promised, spare
from engine.core.types import Party, SeqStatus, Sequence
from engine.core.victim_policies import Candidate
from engine.core.yard import Yard
from engine.runs import ParkCause, ParkReason, WaitKind


class Entrance:
    """Works on the yard through the parking. `admission` is the latest answer to a head of the line."""

    def __init__(self, yard: Yard, parking: Parking) -> None:
        self._yard = yard
        self._parking = parking
        self.admission: Admission | None = None

    def let_in(self) -> None:
        """Let parties enter, head after head, until one has to wait.

        Somebody whose own siblings run stands aside where they leave him no room: they never give
        way to him, and others need not wait for that.
        """
        yard, aside = self._yard, frozenset[Sequence]()
        while (head := yard.lines.head(replace(yard.rank, aside=aside))) is not None:
            if self._let_in(head):
                continue
            if head.parked is None and head.family is not None and head.family.is_running:
                aside |= {head}
            elif not self._let_pass():
                return

    def judge(self, party: Party) -> Admission:
        """Whether a party outside the pool may enter now. Changes nothing."""
        yard = self._yard
        is_new = party[0].parked is None
        kept = 0
        if is_new and not party[0].call:
            kept = sum(seq.priority <= party[0].priority for seq in yard.owed_seats)
        answer = may_sit(len(party), seats_taken=yard.num_seated + kept, seats=yard.config.seats)
        if not answer.is_admitted:
            return answer
        if not self._has_tokens(party):
            return Admission(WaitKind.NO_STEP_TOKENS)
        if yard.is_pool_empty:
            need, usable = pages_to_enter(yard, party), yard.pool.num_usable
            return Admission(None if need <= usable else WaitKind.NO_ROOM, need, usable)
        need = planned_to_enter(yard, party)
        to_grow = 0 if is_new or self._is_owed(party[0]) else self._growth(party)
        left_free = margin(yard, yard.num_seated + len(party))
        return may_hold(need, spare=spare(yard), margin=left_free, growth=to_grow)

    # --- how

    def _let_in(self, head: Sequence) -> bool:
        """Let the head and its siblings in, or end them if they never fit. False: it has to wait."""
        party = head.party if head.parked is not None else (head,)
        while True:
            self.admission = self.judge(party)
            if self.admission.is_admitted:
                self._parking.bring_back(party)
                return True
            lacks_room = self.admission.waits_for in (WaitKind.NO_ROOM, WaitKind.WOULD_NOT_LAST)
            if lacks_room and (self._parking.reclaim(party) or self._borrow(head)):
                continue
            if lacks_room and self._yard.is_pool_empty:
                family = party[0].family
                assert family is not None, f"{head.request_id} fits an empty pool: {self.admission}"
                self._parking.end_all(family.alive, EndReason.OUTGREW_POOL)
                return True
            if not self._rotate(party):
                return False

    def _borrow(self, head: Sequence) -> bool:
        """Let somebody who stays for its owner lend its room: to a head that is owed it, or where nobody runs."""
        yard = self._yard
        if yard.keeper.pages_coming or (yard.num_seated and not self._is_owed(head)):
            return False
        return self._parking.lend()

    def _let_pass(self) -> bool:
        """In the order that allows it, let in whoever of the parked fits."""
        yard = self._yard
        if yard.config.park.resume_order is not ResumeOrder.PASS:
            return False
        rank = yard.rank
        parked = filter(rank.may_enter, yard.lines[SeqStatus.PARKED])
        for seq in sorted(parked, key=rank.key):
            if self.judge(seq.party).is_admitted:
                self._parking.bring_back(seq.party)
                return True
        return False

    def _has_tokens(self, party: Party) -> bool:
        """Whether the step has work for it; without, it would only hold pages.

        The longer a prompt waits for that, the more of a prefix it shares with those before it has
        been computed when it looks for it. One token is always there for whoever has a seat.
        """
        running, budget = self._yard.running, self._yard.budget
        return any(
            seq.num_uncomputed == 1 or tokens_for_entrant(running, seq, budget) > 0 for seq in party
        )

    def _growth(self, party: Party) -> int:
        """What everybody will still take, the party included, as far as limits tell."""
        yard = self._yard
        residents = (*yard.running, *yard.lines[SeqStatus.RESTORING], *party)
        return sum(growth(yard, seq) for seq in residents)

    def _is_owed(self, seq: Sequence) -> bool:
        """Whether the head has waited long enough, or was called by hand."""
        park = self._yard.config.park
        if not self._yard.can_park or park.resume_order is ResumeOrder.PASS:
            return False
        return bool(seq.call) or seq.stretch_s(self._yard.now_s) >= owed_after_s(
            seq, park.rotate_after_s
        )

    def _rotate(self, party: Party) -> bool:
        """Park somebody so that a head that is owed the room can enter. True: look again now.

        Never on top of a copy that is still under way: its pages are coming.
        """
        yard, head = self._yard, party[0]
        if not self._is_owed(head) or yard.keeper.pages_coming or not self._lacks_room(head):
            return False
        chosen = self._choose_rotation(party)
        if chosen is None:
            return False
        assert self.admission is not None
        short = self.admission.pages_needed - self.admission.pages_spare
        reason = ParkReason(
            cause=ParkCause.ROTATION,
            for_ids=tuple(seq.request_id for seq in party),
            pages_short=max(short, 0),
        )
        for seq in party:
            yard.lines.make_room_for(seq)
        yard.counts.rotations += 1
        self._parking.park(chosen.party, chosen.fate, reason)
        return not yard.keeper.pages_coming

    def _lacks_room(self, head: Sequence) -> bool:
        """Whether a park could help: pages are wanted, or a seat that others have."""
        assert self.admission is not None
        return self.admission.waits_for in (WaitKind.NO_ROOM, WaitKind.NO_SEAT)

    def _choose_rotation(self, party: Party) -> Candidate | None:
        """Who loses no state gives way; after a long wait of the head somebody whose state is dropped.

        To a newcomer whom only a seat is lacking, only those of less important classes.
        """
        yard, head = self._yard, party[0]
        entered = {*yard.moves.started, *yard.moves.restored}
        priority = yard.rank.priority(head)
        assert self.admission is not None
        wants_seat = self.admission.waits_for is WaitKind.NO_SEAT and head.parked is None
        candidates = [
            self._parking.candidate(one, sum(promised(yard, seq) for seq in one))
            for one in yard.running_parties()
            if one[0] not in entered
            and (head.family is None or one[0].family is not head.family)
            and may_be_rotated(
                one,
                head_priority=priority,
                now_s=yard.now_s,
                is_head_called=head.called_s is not None,
            )
            and (not wants_seat or one[0].priority > head.priority)
        ]
        need = planned_to_enter(yard, party)

        def lets_in(leaving: Seq[Candidate]) -> bool:
            return self._would_fit(party, need, leaving)

        kept = [one for one in candidates if not one.loses_state]
        chosen = choose_rotation(kept, lets_in)
        if chosen is None and (
            head.call or head.stretch_s(yard.now_s) >= ROTATE_BY_RECOMPUTE_AFTER_S
        ):
            chosen = choose_rotation(candidates, lets_in)
        return chosen

    def _would_fit(self, party: Party, need: int, leaving: Seq[Candidate]) -> bool:
        yard = self._yard
        residents = yard.num_seated - sum(len(one.party) for one in leaving)
        if residents + len(party) > yard.config.seats:
            return False
        if residents == 0:
            return True
        room = spare(yard) + sum(one.gain for one in leaving)
        return need + margin(yard, residents + len(party)) <= room
