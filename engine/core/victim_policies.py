"""Who is asked to leave the pool, and in which order the parked return: one decorated function a policy.

Pure: a policy picks one of several candidates; it never sees the leader, nor anybody who must not
leave. A new policy is one function here; the settings, the configuration's check, the simulator
and the fuzz find it in the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

from engine.core.parked import Fate
from engine.core.types import Party, Sequence

STARVED_PARKS = 3
"""Whoever has been parked so often is passed over while somebody else can go."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A party that may leave the pool, and what that would bring."""

    party: Party
    fate: Fate
    """SWAP if its state can be kept."""
    pages_freed: int
    """Pages that nobody else uses."""
    own_need: int
    """Pages it takes in this step, which leave with it."""
    keeps_room: bool = False
    """Whether it has just been called by hand."""

    @property
    def gain(self) -> int:
        return self.pages_freed + self.own_need

    @property
    def loses_state(self) -> bool:
        """Whether tokens that have been computed would have to be computed again."""
        return self.fate is Fate.RECOMPUTE and any(seq.num_computed for seq in self.party)

    @property
    def priority(self) -> int:
        return self.party[0].priority

    @property
    def arrival(self) -> int:
        return self.party[0].arrival

    @property
    def tokens(self) -> int:
        return tokens_of(self.party)

    @property
    def is_pinned(self) -> bool:
        return any(seq.is_pinned for seq in self.party)

    @property
    def is_starved(self) -> bool:
        return self.party[0].num_parks >= STARVED_PARKS


def tokens_of(party: Party) -> int:
    return sum(len(seq.token_ids) for seq in party)


Pick = Callable[[Seq[Candidate], int], Candidate]
"""One of the candidates, given how many pages are short. Ties must be broken: same arguments, same victim."""

ResumeKey = Callable[[Sequence], tuple[float, ...]]
"""Sort key of a parked sequence among those of the same priority, smallest first."""

LeaderKey = Callable[[Party], tuple[int, ...]]
"""Sort key of a party in the pool; the smallest is never an ordinary victim, so that somebody always advances."""


@dataclass(frozen=True, slots=True)
class VictimPolicy:
    """A policy with the orders that go with it."""

    name: str
    pick: Pick
    resume_key: ResumeKey
    leader_key: LeaderKey
    guards_starved: bool
    """Whether it passes over those parked too often; the order of arrival bounds waits by itself."""


VICTIM_POLICIES: dict[str, VictimPolicy] = {}


def by_arrival(seq: Sequence) -> tuple[float, ...]:
    return (seq.arrival,)


def longest_parked(seq: Sequence) -> tuple[float, ...]:
    return (seq.parked.since_s if seq.parked is not None else seq.arrival_s, seq.arrival)


def oldest(party: Party) -> tuple[int, ...]:
    return party[0].line_key


def most_tokens(party: Party) -> tuple[int, ...]:
    return (-tokens_of(party), *party[0].line_key)


def victim_policy(
    name: str,
    *,
    resume_key: ResumeKey = longest_parked,
    leader_key: LeaderKey = most_tokens,
    guards_starved: bool = True,
) -> Callable[[Pick], Pick]:
    """Register the decorated pick under `name`. Raises ValueError if the name is taken."""

    def register(pick: Pick) -> Pick:
        if name in VICTIM_POLICIES:
            raise ValueError(f"victim policy {name!r} is already registered")
        VICTIM_POLICIES[name] = VictimPolicy(name, pick, resume_key, leader_key, guards_starved)
        return pick

    return register


@victim_policy("fcfs", resume_key=by_arrival, leader_key=oldest, guards_starved=False)
def newest_request(candidates: Seq[Candidate], short: int) -> Candidate:
    """First come, first served: the newest request leaves, the oldest returns first."""
    return max(candidates, key=lambda c: c.arrival)


@victim_policy("cost")
def smallest_that_covers(candidates: Seq[Candidate], short: int) -> Candidate:
    """The smallest that makes the room by itself; where none does, the smallest, and then once more."""
    covering = [c for c in candidates if c.gain >= short] or candidates
    return min(covering, key=lambda c: (c.pages_freed, -c.arrival))


@victim_policy("smallest")
def fewest_tokens(candidates: Seq[Candidate], short: int) -> Candidate:
    """Fewest tokens: the cheapest park, though it may take several."""
    return min(candidates, key=lambda c: (c.tokens, -c.arrival))


@victim_policy("largest", leader_key=oldest)
def most_tokens_first(candidates: Seq[Candidate], short: int) -> Candidate:
    """Most tokens. The oldest is spared instead of the largest, which could otherwise never be picked."""
    return max(candidates, key=lambda c: (c.tokens, c.arrival))


@victim_policy("youngest")
def latest_arrival(candidates: Seq[Candidate], short: int) -> Candidate:
    """The newest request, whoever has most tokens being spared."""
    return max(candidates, key=lambda c: c.arrival)


@victim_policy("oldest")
def earliest_arrival(candidates: Seq[Candidate], short: int) -> Candidate:
    """The oldest request, whoever has most tokens being spared."""
    return min(candidates, key=lambda c: c.arrival)
