"""The scheduler's vocabulary: sequences, pages, plans and steps, all integers. Pure: no tensor, clock, thread or log.

Intervals are half-open. A *page* is a fixed number of token positions in the pool; a sequence's
`page_table` lists its pages in logical order, so token i lives in page `page_table[i //
page_tokens]` at offset `i % page_tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from engine.api import FinishReason


class SeqStatus(Enum):
    """Where a sequence is. A parked sequence has a status of its own, never "waiting and a flag"."""

    WAITING = "waiting"
    RUNNING = "running"
    PARKED = "parked"
    FINISHED = "finished"


LEGAL_MOVES: dict[SeqStatus, frozenset[SeqStatus]] = {
    SeqStatus.WAITING: frozenset({SeqStatus.RUNNING, SeqStatus.FINISHED}),
    SeqStatus.RUNNING: frozenset({SeqStatus.PARKED, SeqStatus.FINISHED}),
    SeqStatus.PARKED: frozenset({SeqStatus.RUNNING, SeqStatus.FINISHED}),
    SeqStatus.FINISHED: frozenset(),
}


class Fate(Enum):
    """What becomes of a victim's state. RECOMPUTE drops its pages; its tokens are prefilled again when it returns."""

    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True)
class ParkedState:
    """What is known of a parked sequence beside its tokens."""

    since_s: float
    fate: Fate
    held_tokens: int


@dataclass(slots=True, eq=False)
class Sequence:
    """One request inside the scheduler. Mutable by the scheduler only (engine thread)."""

    request_id: str
    token_ids: list[int]
    """Prompt, then generated tokens."""
    num_prompt: int
    max_new_tokens: int
    """Generation ends with LENGTH here; already capped by the window."""
    eos_ids: frozenset[int]
    """Tokens that end the reply; empty when the request ignores them."""
    priority: int
    arrival: int
    """Order of submission, kept across parks; the oldest is never an ordinary victim."""
    arrival_s: float
    status: SeqStatus = SeqStatus.WAITING
    num_computed: int = 0
    """Tokens whose keys and values are in the pool: positions [0, num_computed)."""
    num_cached: int = 0
    """Prompt tokens found in the prefix index when the sequence first started."""
    page_table: list[int] = field(default_factory=list)
    parked: ParkedState | None = None
    num_parks: int = 0
    parked_s: float = 0.0
    """Seconds parked so far, over all parks that have ended."""
    last_park_s: float = 0.0
    """Seconds of the latest park that has ended."""
    started_s: float | None = None
    first_token_s: float | None = None

    @property
    def line_key(self) -> tuple[int, int]:
        """Place in every line: the lower priority number first, then the earlier arrival."""
        return (self.priority, self.arrival)

    @property
    def num_generated(self) -> int:
        return len(self.token_ids) - self.num_prompt

    @property
    def num_uncomputed(self) -> int:
        return len(self.token_ids) - self.num_computed

    def move_to(self, status: SeqStatus) -> None:
        """Change the status; raises ValueError on a move that LEGAL_MOVES does not have."""
        if status not in LEGAL_MOVES[self.status]:
            raise ValueError(
                f"{self.request_id}: {self.status.value} -> {status.value} is no legal move"
            )
        self.status = status


@dataclass(frozen=True, slots=True)
class StepRow:
    """One sequence's share of a step: compute tokens [start, start + count) of it."""

    seq: Sequence
    start: int
    count: int
    samples: bool = field(init=False)
    """Whether a next token is sampled: the row computes the last known token and another is wanted.

    Settled when the row is made, so that it still holds after the step has grown the sequence.
    """

    def __post_init__(self) -> None:
        seq = self.seq
        is_last = self.start + self.count == len(seq.token_ids)
        object.__setattr__(self, "samples", is_last and seq.num_generated < seq.max_new_tokens)


@dataclass(frozen=True, slots=True)
class Victim:
    """One sequence that gives its pages away, what becomes of them, and how many come free."""

    seq: Sequence
    fate: Fate
    pages_freed: int


@dataclass(frozen=True, slots=True)
class PreemptPlan:
    """Who leaves the pool and why; data only, carried out by the scheduler."""

    victims: tuple[Victim, ...]
    pages_needed: int
    pages_freed: int
    reason: str


@dataclass(frozen=True, slots=True)
class StepBatch:
    """What one step does; `started`, `parked` and `restored` are the sequences whose status it changed."""

    step: int
    rows: tuple[StepRow, ...]
    started: tuple[Sequence, ...] = ()
    parked: tuple[Sequence, ...] = ()
    restored: tuple[Sequence, ...] = ()
    plan: PreemptPlan | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing to compute; only when no sequence is alive."""
        return not self.rows

    @property
    def num_tokens(self) -> int:
        return sum(row.count for row in self.rows)

    @property
    def sampling_rows(self) -> tuple[StepRow, ...]:
        return tuple(row for row in self.rows if row.samples)


@dataclass(frozen=True, slots=True)
class SeqUpdate:
    """What `Scheduler.update` did to one sequence: the token appended (if any) and whether it ended."""

    seq: Sequence
    token_id: int | None
    finish: FinishReason | None
