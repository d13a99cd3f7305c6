"""Makes room for the next step: parks whoever must leave before pages run out. Called once a step.

A step's need is known exactly, since its pages are taken before it runs; so where parks free
pages at once, nobody leaves before he has to. Part of the Scheduler (engine thread); imports no
tensor library, clock or thread.
"""

from __future__ import annotations

from collections.abc import Mapping

from engine.core.budget import share_step
from engine.core.config import ParkMemory
from engine.core.parked import EndReason, Fate
from engine.core.parking import Parking
from engine.core.planner import choose_victim, leader_of
from engine.core.room import plan_pages, runway
from engine.core.siblings import catch_up, is_held_back
from engine.core.types import SeqStatus, Sequence, StepRow
from engine.core.victim_policies import Candidate
from engine.core.yard import Yard
from engine.runs import ParkCause, ParkReason

Needs = Mapping[Sequence, int]
"""New pages that a step's rows take, for those that need any."""


class Pressure:
    """Works on the yard through the parking."""

    def __init__(self, yard: Yard, parking: Parking) -> None:
        self._yard = yard
        self._parking = parking

    def make_room(self) -> tuple[tuple[StepRow, ...], Needs]:
        """The rows of the next step with the pages they need, which are there.

        While pages are still being copied out, rows whose pages are not there sit this step out.
        """
        while True:
            rows = self._share()
            needs = self._page_needs(rows)
            short = self._short(needs)
            left_free = self._runway()
            if short + left_free <= 0 or not self._free_up(needs, short, left_free):
                break
        if sum(needs.values()) > self._yard.pool.num_usable:
            return self._sit_out(rows, needs)
        return rows, needs

    def last_resort(self, rows: tuple[StepRow, ...]) -> tuple[tuple[StepRow, ...], Needs]:
        """`rows` found no memory: the rows of a smaller step; see `Scheduler.last_resort`."""
        yard, pool = self._yard, self._yard.pool
        yard.counts.last_resorts += 1
        for row in rows:
            self._rewind(row.seq)
        is_copied = yard.config.park.memory is ParkMemory.COPIED
        freed = pool.purge()
        rows, needs = self.make_room()
        while not freed or sum(needs.values()) > pool.num_warm:
            if not self._give_way(drop=not is_copied):
                break
            freed += 1
            pool.purge()
            rows, needs = self.make_room()
            if is_copied:
                break  # the pool has all its memory: one is enough
        return rows, needs

    # --- how

    def _rewind(self, seq: Sequence) -> None:
        """Undo what a row took that was never computed."""
        if seq.status is SeqStatus.RUNNING:
            kept = self._yard.pool.pages_for(seq.num_computed)
            self._yard.pool.take_back(seq.page_table[kept:])
            del seq.page_table[kept:]

    def _give_way(self, *, drop: bool) -> bool:
        """Park the next victim, `drop` its state or keep it; somebody alone ends. False if nobody can leave."""
        if self._parking.lend(drop=drop):
            return True
        if not self._yard.can_park:
            return self._end_newest(EndReason.POOL_FULL)
        victim = self._choose({}, 1)
        if victim is None:
            return self._end_alone(EndReason.POOL_FULL)
        fate = Fate.RECOMPUTE if drop else victim.fate
        self._parking.park(victim.party, fate, ParkReason(cause=ParkCause.LAST_RESORT))
        return True

    def _end_alone(self, reason: EndReason) -> bool:
        """End who has the pool to himself and does not fit it, siblings together. False if nobody has."""
        yard = self._yard
        parties = yard.running_parties()
        if len(parties) != 1 or yard.num_seated > len(parties[0]) or yard.keeper.holds_pages:
            return False
        family = parties[0][0].family
        self._parking.end_all(family.alive if family else parties[0], reason)
        return True

    def _share(self) -> tuple[StepRow, ...]:
        yard = self._yard
        siblings = [seq for seq in yard.running if seq.family is not None]
        if not siblings:
            return share_step(yard.running, yard.budget)
        for seq in siblings:
            catch_up(seq, yard.pool)
        ready = [seq for seq in yard.running if not is_held_back(seq, yard.config.page_tokens)]
        return share_step(ready, yard.budget)

    def _page_needs(self, rows: tuple[StepRow, ...]) -> Needs:
        needs = {}
        for row in rows:
            count = self._yard.pool.pages_for(row.start + row.count) - len(row.seq.page_table)
            if count > 0:
                needs[row.seq] = count
        return needs

    def _short(self, needs: Needs) -> int:
        """Pages that the step needs beyond those there are; or by the blocks that a test plans with, if more."""
        yard = self._yard
        short = sum(needs.values()) - yard.pool.num_usable
        if not yard.config.knobs.granularity_tokens:
            return short
        residents = (
            *yard.running,
            *yard.lines[SeqStatus.RESTORING],
            *yard.lines[SeqStatus.PARKING],
            *yard.lines[SeqStatus.STAYING],
        )
        planned = sum(plan_pages(yard, len(seq.token_ids)) for seq in residents)
        return max(short, planned - yard.pool.num_pages)

    def _runway(self) -> int:
        yard = self._yard
        if not yard.config.knobs.is_planner_on or len(yard.running) < 2:
            return 0
        return runway(yard)

    def _free_up(self, needs: Needs, short: int, left_free: int) -> bool:
        """Take one measure against `short` pages and a margin of `left_free`.

        False if there is none, or the pages are coming already.
        """
        yard = self._yard
        if self._parking.reclaim():
            return True
        if short + left_free - yard.keeper.pages_coming <= 0:
            return False
        if self._parking.lend():
            return True
        is_lost = sum(needs.values()) > yard.pool.num_usable
        if not yard.can_park:
            return is_lost and self._end_newest(EndReason.OUTGREW_POOL)
        victim = self._choose(needs, short + left_free)
        if victim is None:
            return is_lost and self._end_alone(EndReason.OUTGREW_POOL)
        cause = ParkCause.PAGES_SHORT
        if not yard.config.knobs.is_planner_on:
            cause = ParkCause.LAST_RESORT
            yard.counts.last_resorts += 1
        leaving = {seq.request_id for seq in victim.party}
        for_ids = tuple(seq.request_id for seq in needs if seq.request_id not in leaving)
        reason = ParkReason(cause=cause, for_ids=for_ids, pages_short=short + left_free)
        self._parking.park(victim.party, victim.fate, reason)
        return True

    def _end_newest(self, if_alone: EndReason) -> bool:
        """With parking off: the least important, and of these the newest, does not fit."""
        parties = self._yard.running_parties()
        if len(parties) < 2:
            return self._end_alone(if_alone)
        self._parking.end_all(parties[-1], EndReason.POOL_FULL)
        return True

    def _choose(self, needs: Needs, short: int) -> Candidate | None:
        """Who leaves. Whoever has entered for this very step stays: his pages may not even be filled yet."""
        yard = self._yard
        parties = yard.running_parties()
        leader = leader_of(parties, yard.policy)
        if leader is None:
            return None
        entered = {*yard.moves.started, *yard.moves.restored}
        candidates = [
            self._parking.candidate(party, sum(needs.get(seq, 0) for seq in party))
            for party in parties
            if not entered.intersection(party)
        ]
        return choose_victim(candidates, leader, short, yard.policy)

    def _sit_out(
        self, rows: tuple[StepRow, ...], needs: Needs
    ) -> tuple[tuple[StepRow, ...], Needs]:
        """Leave out rows whose pages are not there; the leader is served first, then the line."""
        yard = self._yard
        leader = leader_of(yard.running_parties(), yard.policy)
        assert leader is not None
        left, served = yard.pool.num_usable, {}
        for row in sorted(rows, key=lambda row: row.seq not in leader):
            count = needs.get(row.seq, 0)
            if count <= left:
                left -= count
                served[row.seq] = count
        kept = tuple(row for row in rows if row.seq in served)
        return kept, {seq: count for seq, count in served.items() if count}
