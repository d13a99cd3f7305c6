"""Limits the scheduler works under; validated once. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from engine.core.host_pool import NO_LIMIT
from engine.core.victim_policies import VICTIM_POLICIES

PAGE_TOKENS = 32
"""Token positions in a page. Attention walks pieces of 256 tokens, a multiple of this."""

MARGIN_TOKENS = 8
"""Spare tokens for each sequence in the pool when another one enters, and while parks are asynchronous."""

ROTATE_AFTER_S = 2.0
"""The head of the line is owed the room after this wait; see `engine.core.planner.owed_after_s`."""

LONGEST_TURN = 4
"""One that takes turns with others is owed the room later each time it is parked, at most so many times as late."""

ROTATE_BY_RECOMPUTE_AFTER_S = 30.0
"""Where the budget keeps a resident from giving way, its state is dropped after this wait of the head."""

GUARD_TOKENS = 32
"""A sequence that has come back may not be rotated out before it has generated so many tokens ..."""

GUARD_S = 2.0
"""... or at least one, and so many seconds have passed."""

CALLED_S = 8.0
"""Whoever is called by hand keeps its room for so long once it is in the pool: one of the longest turns."""

PRIORITY_STEP_S = 30.0
"""Waiting for this long counts as one class of priority."""

PATIENCE_STEP_S = 2.0
"""Among the parked of one class, whoever has waited for so much longer goes first whatever the policy says."""

RESTORE_TRIES = 8
RESTORE_TRIES_S = 60.0
"""A sequence ends when its restore has failed so often and it has been parked for so long."""

RESTORE_PAUSE_S = 1.0
"""Between two tries to restore a sequence."""


class ParkMemory(Enum):
    """Where the state of a parked sequence is kept."""

    NONE = "none"
    """Nowhere: every park is a recompute."""
    IN_PLACE = "in_place"
    """The pool is host memory: pages change accounts, nothing is copied."""
    COPIED = "copied"
    """In host buffers, which pages are copied to and back from."""


class ResumeOrder(Enum):
    """Whether somebody may pass the head of the line of parked sequences."""

    HEAD = "head"
    PASS = "pass"
    """Whoever fits may go, for comparison: the one parked most often first. Nobody is rotated out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkConfig:
    """How sequences are parked. Raises ValueError, naming field, value and limit, when a bound is broken."""

    memory: ParkMemory = ParkMemory.NONE
    budget_bytes: int = NO_LIMIT
    """Most bytes parked states may hold. 0: nobody is ever parked; -1: no limit."""
    page_bytes: int = 1
    """Bytes of a page of the pool; at least 1."""
    arena_pages: int = 0
    """IN_PLACE: page numbers there is address space for; 0: as many as pool and budget hold."""
    is_async: bool = False
    """COPIED: copies run beside the steps."""
    rotate_after_s: float = ROTATE_AFTER_S
    resume_order: ResumeOrder = ResumeOrder.HEAD

    def __post_init__(self) -> None:
        for name, least in (
            ("budget_bytes", NO_LIMIT), ("page_bytes", 1), ("arena_pages", 0), ("rotate_after_s", 0),
        ):  # fmt: skip
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}, the least is {least}")
        if self.is_async and self.memory is not ParkMemory.COPIED:
            raise ValueError(
                f"is_async is on and memory is {self.memory.value}: only copies run beside the steps"
            )
        is_unlimited = self.budget_bytes == NO_LIMIT and not self.arena_pages
        if self.memory is ParkMemory.IN_PLACE and is_unlimited:
            raise ValueError(
                "budget_bytes is -1, no limit: parking in place needs arena_pages, "
                "the page numbers there is address space for"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What tests may twist, by hidden flags too. Raises ValueError, naming field, value and limit."""

    park_every_tokens: int = 0
    """Park every generating sequence each time it has generated so many tokens; 0: never."""
    is_planner_on: bool = True
    """Off: nobody is parked ahead of a step that finds no page, only then."""
    fail_save: int = 0
    """The so-manieth park that would keep its state finds no memory for it; 0: none."""
    granularity_tokens: int = 0
    """Plan as if pages had so many tokens, a multiple of a page's; 0: plan with what they have."""

    def __post_init__(self) -> None:
        for name in ("park_every_tokens", "fail_save", "granularity_tokens"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, the least is 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """Raises ValueError, naming field, value and limit, when a bound is broken."""

    num_pages: int
    """Pages in the pool; at least 1."""
    page_tokens: int = PAGE_TOKENS
    max_running: int = 4
    """Seats (`--parallel`); at least 1."""
    step_tokens: int = 256
    """Token budget of a step; at least 1."""
    window_tokens: int = 0
    """Most tokens one sequence may hold: the smaller of the model's window and the pool. 0: the pool."""
    victim_policy: str = "fcfs"
    """Who leaves when pages are short: a name registered in engine.core.victim_policies."""
    park: ParkConfig = field(default_factory=ParkConfig)
    knobs: Knobs = field(default_factory=Knobs)

    def __post_init__(self) -> None:
        for name in ("num_pages", "page_tokens", "max_running", "step_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, the least is 1")
        if not 0 <= self.window_tokens <= self.pool_tokens:
            raise ValueError(
                f"window_tokens is {self.window_tokens}, allowed is 0 to the pool's {self.pool_tokens}"
            )
        if self.victim_policy not in VICTIM_POLICIES:
            known = ", ".join(sorted(VICTIM_POLICIES))
            raise ValueError(f"victim_policy is {self.victim_policy!r}, allowed is {known}")
        if self.knobs.granularity_tokens % self.page_tokens:
            raise ValueError(
                f"granularity_tokens is {self.knobs.granularity_tokens}, "
                f"allowed are multiples of {self.page_tokens}"
            )

    @property
    def pool_tokens(self) -> int:
        return self.num_pages * self.page_tokens

    @property
    def sequence_tokens(self) -> int:
        """Most tokens one sequence may hold, as a number."""
        return self.window_tokens or self.pool_tokens

    @property
    def seats(self) -> int:
        """Most sequences that run at once: each must be able to get a token in every step."""
        return min(self.max_running, self.step_tokens)

    @property
    def arena_pages(self) -> int:
        """Page numbers in use: the pool's, and where parks happen in place those of the budget."""
        if self.park.memory is not ParkMemory.IN_PLACE:
            return self.num_pages
        return self.num_pages + max(
            self.park.arena_pages - self.num_pages, self.budget_pages(self.park.budget_bytes)
        )

    def budget_pages(self, budget_bytes: int) -> int:
        """Pages in the budget of parks in place; no limit means all the arena has."""
        room = max(self.park.arena_pages - self.num_pages, 0)
        if budget_bytes == NO_LIMIT:
            return room
        pages = budget_bytes // self.park.page_bytes
        return min(pages, room) if self.park.arena_pages else pages
