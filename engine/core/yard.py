"""What the parts of the scheduler share: the pool, the lines, the keeper, the policy, and what has moved.

Each part changes it in its own way, one after the other; all run on the engine thread. Imports no
tensor library, clock or thread: `now_s` is the time of the step being planned.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from engine.core.budget import StepBudget
from engine.core.config import ParkMemory, ResumeOrder, SchedulerConfig
from engine.core.copy_keeper import CopyKeeper
from engine.core.keepers import InPlaceKeeper, Keeper
from engine.core.kv_pool import KVPool
from engine.core.lines import Lines, Rank
from engine.core.types import OWNS_PAGES, Party, SeqEnd, SeqStatus, Sequence
from engine.core.victim_policies import VICTIM_POLICIES, VictimPolicy


@dataclass(slots=True)
class Moves:
    """Changes of status since the last batch, which the next one reports."""

    ended: list[SeqEnd] = field(default_factory=list)
    started: list[Sequence] = field(default_factory=list)
    restored: list[Sequence] = field(default_factory=list)
    parked: list[Sequence] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.ended or self.started or self.restored or self.parked)


@dataclass(slots=True)
class Counts:
    """What has happened since the scheduler was made; for metrics."""

    parks: int = 0
    """Counted when the pages have been given to the pool."""
    resumes: int = 0
    """Counted when the sequence can take part in steps again."""
    recomputes: int = 0
    rotations: int = 0
    last_resorts: int = 0


@dataclass(slots=True)
class Yard:
    """See the module."""

    config: SchedulerConfig
    pool: KVPool
    keeper: Keeper
    policy: VictimPolicy
    budget_bytes: int
    budget: StepBudget
    """Of the step being planned."""
    lines: Lines = field(default_factory=Lines)
    moves: Moves = field(default_factory=Moves)
    counts: Counts = field(default_factory=Counts)
    has_wishes: bool = False
    """Whether somebody in the pool may have to be parked by hand."""
    step: int = 0
    now_s: float = 0.0

    @staticmethod
    def make(config: SchedulerConfig) -> Yard:
        """An empty yard."""
        pool = KVPool(config.num_pages, config.page_tokens, config.arena_pages)
        copied = config.park.memory is ParkMemory.COPIED
        keeper = CopyKeeper(pool, config) if copied else InPlaceKeeper(pool, config)
        policy = VICTIM_POLICIES[config.victim_policy]
        budget = StepBudget(config.step_tokens, config.step_tokens)
        return Yard(config, pool, keeper, policy, config.park.budget_bytes, budget)

    @property
    def can_park(self) -> bool:
        return self.budget_bytes != 0

    @property
    def rank(self) -> Rank:
        """The order of those outside the pool in the step being planned."""
        return self.rank_at(self.step)

    def rank_at(self, step: int) -> Rank:
        """The order of those outside the pool in some step at this moment."""
        order = self.config.park.resume_order
        return Rank(self.now_s, step, self.policy.resume_key, order, self._seatless_class())

    @property
    def running(self) -> list[Sequence]:
        return self.lines.running

    @property
    def num_seated(self) -> int:
        """Seats taken by those who take part in steps or are about to."""
        return len(self.running) + len(self.lines[SeqStatus.RESTORING])

    @property
    def owed_seats(self) -> list[Sequence]:
        """Those who have been parked and come back by themselves: their seats are kept for them."""
        parked = [seq for seq in self.lines[SeqStatus.PARKED] if not seq.is_held]
        return [*parked, *self.lines[SeqStatus.PARKING]]

    def _seatless_class(self) -> float:
        """See `Rank`: a newcomer may have the seat of one that matters less, if that one can be parked for it."""
        seated, owed = [*self.running, *self.lines[SeqStatus.RESTORING]], self.owed_seats
        if len(seated) + len(owed) < self.config.seats:
            return math.inf
        if not self.can_park or self.config.park.resume_order is ResumeOrder.PASS:
            return -math.inf
        classes = [-math.inf if seq.is_pinned else seq.priority for seq in seated]
        return sorted([*classes, *(seq.priority for seq in owed)])[self.config.seats - 1]

    @property
    def is_pool_empty(self) -> bool:
        """Whether neither anybody nor a copy under way owns a page."""
        return not self.num_seated and not self.keeper.holds_pages

    def running_parties(self) -> list[Party]:
        """Everybody who takes part in steps, siblings together, in line order."""
        parties: dict[object, Party] = {}
        for seq in self.running:
            if seq.family is None or seq.family not in parties:
                parties[seq.family or seq] = seq.party
        return list(parties.values())

    def parked_parties(self) -> list[Party]:
        """Everybody who is parked, siblings together; those held by hand last, before them in order of return."""
        rank = self.rank
        parked = sorted(self.lines[SeqStatus.PARKED], key=lambda seq: (seq.is_held, *rank.key(seq)))
        return [seq.party for seq in parked if seq is seq.party[0]]

    def check(self) -> None:
        """Recount everything. Raises AssertionError, with the numbers, on whatever is wrong."""
        self.lines.check()
        self.pool.check()
        self.keeper.check()
        pages = range(self.pool.arena_pages)
        users = Counter({page: self.pool.user_count(page) for page in pages})
        sleepers = Counter({page: self.pool.sleeper_count(page) for page in pages})
        live = self.lines.live
        owned = Counter(p for seq in live if seq.status in OWNS_PAGES for p in seq.page_table)
        owned += self.keeper.pages_held()
        asleep = Counter(p for seq in self.lines[SeqStatus.PARKED] for p in seq.page_table)
        assert users == owned, f"uses of pages: counted {users}, listed {owned}"
        assert sleepers == asleep, f"uses of pages by the parked: {sleepers}, listed {asleep}"
        assert self.num_seated <= self.config.seats, f"{self.num_seated} on {self.config.seats}"
        for seq in live:
            held = len(seq.page_table) + len(seq.saved) * (seq.status is SeqStatus.PARKED)
            needed = self.pool.pages_for(seq.num_computed)
            assert held >= needed, (
                f"{seq.request_id} ({seq.status.value}) holds {held}, computed {needed} pages"
            )
