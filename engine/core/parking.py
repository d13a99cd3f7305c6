"""Carries out what is decided: parks, returns and ends parties, and takes note of copies that land or fail.

Settles statuses, reasons and counts; where the pages go is the keeper's. Engine thread; imports no
tensor library, clock or thread.
"""

from __future__ import annotations

from dataclasses import replace

from engine.core.config import RESTORE_PAUSE_S, RESTORE_TRIES, RESTORE_TRIES_S
from engine.core.parked import CopyWay, EndReason, Fate, ParkedState
from engine.core.planner import keeps_room
from engine.core.types import OWNS_PAGES, Party, SeqEnd, SeqStatus, Sequence
from engine.core.victim_policies import Candidate
from engine.core.yard import Yard
from engine.runs import ParkCause, ParkReason


class Parking:
    """Works on the yard; decides nothing."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._num_saves = 0
        """Parks that would have kept their state; for the knob that makes one of them fail."""

    # --- out of the pool

    def candidate(self, party: Party, own_need: int) -> Candidate:
        """What parking a party in the pool would bring now."""
        yard = self._yard
        is_called = keeps_room(party, yard.now_s)
        if yard.keeper.can_keep(party):
            freed = yard.keeper.pages_freed(party)
            return Candidate(party, Fate.SWAP, freed, own_need, keeps_room=is_called)
        tables = [seq.page_table for seq in party]
        freed = len(yard.pool.pages_of_only(tables, sleepers=False))
        return Candidate(party, Fate.RECOMPUTE, freed, own_need, keeps_room=is_called)

    def park(self, party: Party, fate: Fate, reason: ParkReason) -> None:
        """Take a running party out of the pool: at once, or with its pages being copied first."""
        yard = self._yard
        if fate is Fate.SWAP and self._save_fails():
            fate = Fate.RECOMPUTE
        for seq in party:
            seq.parked = ParkedState(yard.now_s, yard.step, fate, reason, len(seq.token_ids))
            seq.num_parks += 1
            seq.num_lost = 0
            seq.wants_park, seq.called_s = False, None
        yard.moves.parked += (seq for seq in party if not seq.is_staying)
        if fate is Fate.RECOMPUTE:
            for seq in party:
                self.drop_pages(seq)
            self._count_recompute(party)
        elif not yard.keeper.keep(party):
            self._move(party, SeqStatus.PARKING)
            return
        yard.counts.parks += len(party)
        self._move(party, SeqStatus.PARKED)

    def to_recompute(self, party: Party) -> None:
        """Drop the kept state of a parked party."""
        self._yard.keeper.drop(party)
        for seq in party:
            assert seq.parked is not None
            seq.parked = replace(seq.parked, fate=Fate.RECOMPUTE)
            self._forget_computed(seq)
        self._count_recompute(party)

    def lend(self, *, drop: bool = False) -> bool:
        """Lend out the room of whoever stays longest for its owner; `drop`: its state is not kept in any case.

        False if nobody in the pool stays.
        """
        staying = self._yard.lines[SeqStatus.STAYING]
        if staying:
            first = min(staying, key=lambda seq: (seq.stays_since_s, seq.arrival))
            self.lend_room_of(first, drop=drop)
            return True
        return False

    def lend_room_of(self, seq: Sequence, *, drop: bool = False) -> None:
        """Take one that stays for its owner out of the pool, its state kept where that can be."""
        fate = Fate.RECOMPUTE if drop else self.candidate((seq,), 0).fate
        self.park((seq,), fate, ParkReason(cause=ParkCause.OWNER_AWAY))

    def reclaim(self, spared: Party = ()) -> bool:
        """Free pages that parked parties have left behind in the pool, of those first who return last.

        They are moved to where the rest is kept, or if there is no room, the whole state is
        dropped. False if nobody but `spared` has left anything behind.
        """
        pool = self._yard.pool
        for party in reversed(self._yard.parked_parties() if pool.num_stranded else []):
            pages = (page for seq in party for page in seq.page_table)
            if party == spared or not any(map(pool.is_stranded, pages)):
                continue
            if self._yard.keeper.take_along(party):
                for seq in party:
                    assert seq.parked is not None
                    seq.parked = replace(seq.parked, step=self._yard.step)
            else:
                self.to_recompute(party)
            return True
        return False

    def honour_budget(self) -> None:
        """Drop states, of those first who return last, until the budget holds what is kept."""
        if not self._yard.keeper.is_over_budget:
            return
        for party in reversed(self._yard.parked_parties()):
            if party[0].parked is not None and party[0].parked.fate is Fate.SWAP:
                self.to_recompute(party)
                if not self._yard.keeper.is_over_budget:
                    return

    # --- back into the pool

    def bring_back(self, party: Party) -> None:
        """Give a party outside the pool its seats and pages: at once, or when they have been copied back."""
        yard = self._yard
        parked = party[0].parked
        if parked is not None and parked.fate is Fate.SWAP:
            if not yard.keeper.bring_back(party):
                self._move(party, SeqStatus.RESTORING)
                return
        else:
            for seq in party:
                self._start_from_prefix(seq)
        self._move(party, SeqStatus.RUNNING)
        for seq in party:
            self._seat(seq)

    def _start_from_prefix(self, seq: Sequence) -> None:
        found = self._yard.pool.find(seq.findable_ids)
        self._yard.pool.share(found)
        seq.page_table = found
        seq.num_published = len(found)
        seq.num_computed = len(found) * self._yard.config.page_tokens

    def _seat(self, seq: Sequence) -> None:
        """It takes part in steps from now on."""
        yard = self._yard
        seq.call, seq.is_made_room_for = 0, False
        if seq.started_s is None:
            seq.parked = None
            seq.started_s = yard.now_s
            seq.num_cached = seq.num_computed
            yard.moves.started.append(seq)
            return
        self._close_park(seq)
        seq.last_recomputed = max(seq.num_lost - seq.num_computed, 0)
        seq.num_lost = 0
        seq.resumed_s = yard.now_s
        seq.num_generated_at_resume = seq.num_generated
        yard.counts.resumes += 1
        yard.moves.restored.append(seq)

    def _close_park(self, seq: Sequence) -> None:
        if seq.parked is not None:
            seq.last_park_s = self._yard.now_s - seq.parked.since_s
            seq.parked_s += seq.last_park_s
            seq.parked = None

    # --- gone

    def end(self, seq: Sequence) -> None:
        """End a sequence in any state; pages under a copy come free when it lands."""
        yard = self._yard
        is_kept = seq.status is SeqStatus.PARKED and (
            seq.parked is not None and seq.parked.fate is Fate.SWAP
        )
        if is_kept:
            yard.keeper.drop((seq,))
        elif seq.status in OWNS_PAGES:
            self.drop_pages(seq)
        self._close_park(seq)
        yard.lines.move(seq, SeqStatus.FINISHED)
        yard.keeper.end(seq)

    def end_all(self, party: Party, reason: EndReason) -> None:
        """End a party by the scheduler's own decision, which the next batch reports."""
        yard = self._yard
        needed = sum(len(seq.token_ids) for seq in party)
        for seq in party:
            waited_s = seq.waited_s(yard.now_s)
            end = SeqEnd(seq, reason, needed, yard.config.pool_tokens, waited_s)
            self.end(seq)
            yard.moves.ended.append(end)

    def drop_pages(self, seq: Sequence) -> None:
        """Give all pages of a sequence in the pool back to it; what it computed stays reusable until it is taken."""
        self._yard.pool.release(seq.page_table)
        seq.page_table = []
        self._forget_computed(seq)

    # --- copies

    def copy_landed(self, copy_id: int) -> None:
        """The copy has been made: its pages change hands. Does nothing for one that is not under way."""
        transfer = self._yard.keeper.land(copy_id)
        if transfer is None:
            return
        if transfer.way is CopyWay.OUT:
            left = _in_status(transfer.party, SeqStatus.PARKING)
            self._yard.counts.parks += len(left)
            self._move(left, SeqStatus.PARKED)
            self.honour_budget()
        else:
            back = _in_status(transfer.party, SeqStatus.RESTORING)
            self._move(back, SeqStatus.RUNNING)
            for seq in back:
                self._seat(seq)

    def copy_failed(self, copy_id: int) -> None:
        """The copy could not be made. OUT: the state is lost and will be recomputed; IN: it is tried again.

        After many failures and a long time the sequence ends. Does nothing for a copy not under way.
        """
        transfer = self._yard.keeper.fail(copy_id)
        if transfer is None:
            return
        if transfer.way is CopyWay.OUT:
            self._lose(_in_status(transfer.party, SeqStatus.PARKING, SeqStatus.PARKED))
            return
        for seq, parked in zip(transfer.party, transfer.parked, strict=True):
            if seq.status in (SeqStatus.RUNNING, SeqStatus.RESTORING):
                self._put_back(seq, parked)
        failed = _in_status(transfer.party, SeqStatus.PARKED)
        tried_s = self._yard.now_s - transfer.parked[0].since_s
        if transfer.parked[0].num_fails + 1 >= RESTORE_TRIES and tried_s >= RESTORE_TRIES_S:
            self.end_all(failed, EndReason.RESTORE_FAILED)

    def _lose(self, party: Party) -> None:
        leaving = _in_status(party, SeqStatus.PARKING)
        self._yard.counts.parks += len(leaving)
        for seq in party:
            assert seq.parked is not None
            seq.parked = replace(seq.parked, fate=Fate.RECOMPUTE)
            self._forget_computed(seq)
        self._count_recompute(party)
        self._move(leaving, SeqStatus.PARKED)

    def _put_back(self, seq: Sequence, parked: ParkedState) -> None:
        """A restore has failed: the sequence is parked as before, and had never come back."""
        if parked.reason.cause is ParkCause.OWNER_AWAY:
            seq.started_s = None
        elif seq.status is SeqStatus.RUNNING:
            seq.parked_s -= seq.last_park_s
            self._yard.counts.resumes -= 1
        seq.parked = replace(
            parked, num_fails=parked.num_fails + 1, retry_s=self._yard.now_s + RESTORE_PAUSE_S
        )
        self._yard.lines.move(seq, SeqStatus.PARKED)

    # --- how

    def _move(self, party: Party, status: SeqStatus) -> None:
        for seq in party:
            self._yard.lines.move(seq, status)

    def _forget_computed(self, seq: Sequence) -> None:
        seq.num_lost = seq.num_computed
        seq.num_computed = seq.num_published = 0

    def _count_recompute(self, party: Party) -> None:
        """Those who had computed something will have to do it again."""
        for seq in party:
            if seq.num_lost:
                seq.num_recomputes += 1
                self._yard.counts.recomputes += 1

    def _save_fails(self) -> bool:
        self._num_saves += 1
        return self._num_saves == self._yard.config.knobs.fail_save


def _in_status(party: Party, *statuses: SeqStatus) -> Party:
    return tuple(seq for seq in party if seq.status in statuses)
