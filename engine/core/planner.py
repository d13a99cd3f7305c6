"""Decides who leaves the pool: for the next step, or for the head of the line. Pure: same arguments, same answer.

The answers are data; the Parking carries them out, and the Pressure and the Entrance ask again
until there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq

from engine.core.config import CALLED_S, GUARD_S, GUARD_TOKENS, LONGEST_TURN
from engine.core.types import Party, Sequence
from engine.core.victim_policies import Candidate, VictimPolicy


def leader_of(parties: Iterable[Party], policy: VictimPolicy) -> Party | None:
    """The party that no ordinary park may take; None if there is none at all."""
    return min(parties, key=policy.leader_key, default=None)


def choose_victim(
    candidates: Seq[Candidate], leader: Party, short: int, policy: VictimPolicy
) -> Candidate | None:
    """Who leaves next when `short` pages are missing.

    None if fewer than two are there: parking cannot help somebody alone. The leader is spared
    while somebody else may go; if all others are pinned or just called by hand it goes before
    them, the called next, and pinned ones only where nobody else is left. Then in this order: the
    least important, those who lose no state, those not parked too often, and whom the policy picks
    of these.
    """
    if len(candidates) < 2:
        return None
    others = [c for c in candidates if c.party[0] is not leader[0]]
    left = (
        [c for c in others if not (c.is_pinned or c.keeps_room)]
        or [c for c in candidates if not (c.is_pinned or c.keeps_room)]
        or [c for c in others if not c.is_pinned]
        or [c for c in candidates if not c.is_pinned]
        or others
    )
    least = max(c.priority for c in left)
    left = [c for c in left if c.priority == least]
    left = [c for c in left if not c.loses_state] or left
    if policy.guards_starved:
        left = [c for c in left if not c.is_starved] or left
    return policy.pick(left, short)


def choose_rotation(
    candidates: Seq[Candidate], lets_in: Callable[[Seq[Candidate]], bool]
) -> Candidate | None:
    """Who gives way to the head of the line; `lets_in` tells whether it fits once some have left.

    Of those that are enough alone the one that frees fewest pages; if none is, the one that frees
    most, and then once more. None where all together are not enough: nobody leaves for nothing.
    """
    if not candidates or not lets_in(candidates):
        return None
    enough = [c for c in candidates if lets_in([c])]
    if enough:
        return min(enough, key=lambda c: (c.pages_freed, -c.arrival))
    return max(candidates, key=lambda c: (c.gain, c.arrival))


def owed_after_s(head: Sequence, first_s: float) -> float:
    """Seconds outside the pool after which the head of the line is owed the room.

    `first_s` for a newcomer and at the first park; twice, three times and at most `LONGEST_TURN`
    times that at the next ones. So those who take turns in a pool too small for all of them get
    longer turns, and there are far fewer parks, while nobody waits long the first time.
    """
    return first_s * min(max(head.num_parks, 1), LONGEST_TURN)


def keeps_room(party: Party, now_s: float) -> bool:
    """Whether it has been called by hand and has not had a long turn in the pool since."""
    return kept_for_s(party, now_s) > 0


def kept_for_s(party: Party, now_s: float) -> float:
    """Seconds for which it still keeps its room since it was called by hand; 0 if it was not, or long ago."""
    since_s = (max(seq.called_s, _entered_s(seq)) for seq in party if seq.called_s is not None)
    return max([0.0, *(CALLED_S - (now_s - one) for one in since_s)])


def _entered_s(seq: Sequence) -> float:
    times = (seq.resumed_s, seq.started_s, 0.0)
    return next(time for time in times if time is not None)


def may_be_rotated(
    party: Party, *, head_priority: int, now_s: float, is_head_called: bool = False
) -> bool:
    """Whether a party in the pool may have to give way to a head of that priority.

    It must be generating, not pinned and no more important. One that has come back from a park has
    some time first, so that two do not push each other in and out; one called by hand a long turn,
    unless somebody else is called.
    """
    first = party[0]
    if keeps_room(party, now_s) and not is_head_called:
        return False
    if first.is_pinned or first.priority < head_priority:
        return False
    if not all(seq.is_generating for seq in party):
        return False
    if first.resumed_s is None:
        return True
    done = min(seq.num_generated - seq.num_generated_at_resume for seq in party)
    return done >= GUARD_TOKENS or (done >= 1 and now_s - first.resumed_s >= GUARD_S)
