"""What a person may change while everything runs: park, call, pin and rank requests; policy and budget.

Siblings are steered together. Nothing here moves a page by itself, except that a smaller budget is
honoured at once. Part of the Scheduler (engine thread); imports no tensor library, clock or thread.
"""

from __future__ import annotations

from engine.core.parking import Parking
from engine.core.types import Party, SeqStatus
from engine.core.victim_policies import VICTIM_POLICIES
from engine.core.yard import Yard
from engine.runs import (
    ParkNow,
    Pin,
    ResumeNext,
    SetParkBudget,
    SetPriority,
    SetVictimPolicy,
    SteeringCommand,
)


class Steering:
    """Works on the yard; what it asks for happens at the next step."""

    def __init__(self, yard: Yard, parking: Parking) -> None:
        self._yard = yard
        self._parking = parking

    def apply(self, command: SteeringCommand) -> bool:
        """Carry out a command. False, and nothing changed, for nobody alive or a park while parking is off."""
        match command:
            case ParkNow(request_id=request_id):
                return self._park_now(self._party(request_id))
            case ResumeNext(request_id=request_id, goes_first=goes_first):
                return self._resume(self._party(request_id), goes_first=goes_first)
            case Pin(request_id=request_id, is_pinned=is_pinned):
                party = self._party(request_id)
                for seq in party:
                    seq.is_pinned = is_pinned
                return bool(party)
            case SetPriority(request_id=request_id, priority=priority):
                party = self._party(request_id)
                for seq in party:
                    self._yard.lines.set_priority(seq, priority)
                return bool(party)
            case SetVictimPolicy(name=name):
                self._yard.policy = VICTIM_POLICIES[name]
                return True
            case SetParkBudget(budget_bytes=budget_bytes):
                return self._set_budget(budget_bytes)

    def _party(self, request_id: str) -> Party:
        """The request and all its siblings alive, whatever their status; nobody if it is not alive, or has ended and
        only stays."""
        seq = self._yard.lines.find(request_id)
        if seq is None or seq.is_staying:
            return ()
        return (seq,) if seq.family is None else seq.family.alive

    def _park_now(self, party: Party) -> bool:
        """It leaves the pool, or does not enter it, until it is resumed by hand."""
        if not party or not self._yard.can_park:
            return False
        for seq in party:
            seq.is_held = True
            seq.wants_park = seq.status in (SeqStatus.RUNNING, SeqStatus.RESTORING)
            seq.call = 0
            seq.called_s = None
        self._yard.has_wishes = True
        return True

    def _resume(self, party: Party, *, goes_first: bool) -> bool:
        """It is held no longer; and, if it goes first, heads the line and then keeps its room for a while.

        One that is in the pool loses a park not carried out yet, and keeps its room for a while from now: it may have
        come back a moment before somebody said so.
        """
        for seq in reversed(party):
            seq.is_held = seq.wants_park = False
            if goes_first:
                seq.called_s = self._yard.now_s
            if goes_first and seq.status not in (SeqStatus.RUNNING, SeqStatus.RESTORING):
                self._yard.lines.call(seq)
        return bool(party)

    def _set_budget(self, budget_bytes: int) -> bool:
        self._yard.budget_bytes = budget_bytes
        self._yard.keeper.set_budget(budget_bytes)
        self._parking.honour_budget()
        return True
