"""The scheduler's vocabulary: sequences, families and steps, all integers. Pure: no tensor, clock, thread or log.

Intervals are half-open. A *page* is a fixed number of token positions in the pool; a sequence's
`page_table` lists its pages in logical order, so token i lives in page `page_table[i //
page_tokens]` at offset `i % page_tokens`. Those who come and go together are a *party*: a sequence
alone, or the siblings of a family.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from engine.api import FinishReason, Stay
from engine.core.parked import EndReason, PageCopy, ParkedState, SavedPage


class SeqStatus(Enum):
    """Where a sequence is. A parked sequence has a status of its own, never "waiting and a flag"."""

    WAITING = "waiting"
    RUNNING = "running"
    PARKING = "parking"
    """Its pages are being copied out: it takes no part in steps and still owns them."""
    PARKED = "parked"
    RESTORING = "restoring"
    """Its pages are being filled again: it owns them and takes no part in steps yet."""
    STAYING = "staying"
    """It has ended and its owner is awaited: it owns its pages, has no seat and takes no part in steps."""
    FINISHED = "finished"


LEGAL_MOVES: dict[SeqStatus, frozenset[SeqStatus]] = {
    SeqStatus.WAITING: frozenset({SeqStatus.RUNNING, SeqStatus.FINISHED}),
    SeqStatus.RUNNING: frozenset(
        {SeqStatus.PARKING, SeqStatus.PARKED, SeqStatus.STAYING, SeqStatus.FINISHED}
    ),
    SeqStatus.PARKING: frozenset({SeqStatus.PARKED, SeqStatus.FINISHED}),
    SeqStatus.PARKED: frozenset({SeqStatus.RESTORING, SeqStatus.RUNNING, SeqStatus.FINISHED}),
    SeqStatus.RESTORING: frozenset({SeqStatus.RUNNING, SeqStatus.PARKED, SeqStatus.FINISHED}),
    SeqStatus.STAYING: frozenset({SeqStatus.PARKING, SeqStatus.PARKED, SeqStatus.FINISHED}),
    SeqStatus.FINISHED: frozenset(),
}

OWNS_PAGES = frozenset(
    {SeqStatus.RUNNING, SeqStatus.PARKING, SeqStatus.RESTORING, SeqStatus.STAYING}
)
"""Statuses in which the pages of the table are the sequence's own and in the pool's account."""

WAITS = frozenset({SeqStatus.WAITING, SeqStatus.PARKED})
"""Statuses of a sequence that is in line, or held by hand."""

IS_OUT = frozenset({SeqStatus.PARKING, SeqStatus.PARKED, SeqStatus.RESTORING})
"""Statuses of a sequence that was running and is out of the steps because of a park."""


@dataclass(slots=True, eq=False)
class Sequence:
    """One request inside the scheduler. Mutable by the scheduler only (engine thread)."""

    request_id: str
    token_ids: list[int]
    """Prompt, then generated tokens; without those that context shifts have discarded."""
    num_prompt: int
    max_new_tokens: int
    """Generation ends with LENGTH here; already capped by the window, unless `keep_tokens` is set."""
    eos_ids: frozenset[int]
    """Tokens that end the reply; empty when the request ignores them."""
    priority: int
    arrival: int
    """Order of submission, kept across parks."""
    arrival_s: float
    keep_tokens: int | None = None
    """Tokens at the beginning that a context shift keeps when the window is full; None: the reply ends there."""
    max_wait_s: float | None = None
    """Most seconds it waits outside the pool, all stretches together."""
    stay: Stay | None = None
    """Whether, and how long, it is kept after its end for its owner; only of one without a family."""
    family: Family | None = None
    status: SeqStatus = SeqStatus.WAITING
    num_computed: int = 0
    """Tokens whose keys and values exist, in the pool or where a park keeps them: positions [0, num_computed)."""
    num_published: int = 0
    """Pages at the beginning of the table that the prefix index knows."""
    num_cached: int = 0
    """Prompt tokens found in the prefix index when the sequence first started."""
    num_discarded: int = 0
    """Tokens that context shifts have taken out of `token_ids`."""
    read_until: int = 0
    """The model's output is wanted of every token before this position, each once; 0: only where a token is sampled."""
    num_read: int = 0
    """Positions before this one whose output has been taken, or is not wanted after all."""
    read_tokens: int | None = None
    """Most of these in one step; None: as many as the step has room for."""
    page_table: list[int] = field(default_factory=list)
    saved: list[SavedPage] = field(default_factory=list)
    """Pages copied out of the pool: those that follow `page_table`."""
    parked: ParkedState | None = None
    is_pinned: bool = False
    is_held: bool = False
    """Parked by hand: in no line until it is resumed by hand."""
    wants_park: bool = False
    """To be parked by hand before the next step."""
    call: int = 0
    """Below 0: called to the head of the line by hand, the latest call being the lowest number."""
    called_s: float | None = None
    """When it was let go first by hand; None once it has been parked since."""
    is_made_room_for: bool = False
    """Somebody has been parked so that it can enter: whose pages come free belongs to it, not to him."""
    parks_in_step: bool = False
    """Its host memory cannot be copied to beside a step: its parks must land before the next one."""
    num_parks: int = 0
    num_recomputes: int = 0
    parked_s: float = 0.0
    """Seconds parked so far, over all parks that have ended."""
    last_park_s: float = 0.0
    """Seconds of the latest park that has ended."""
    started_s: float | None = None
    first_token_s: float | None = None
    num_lost: int = 0
    """Tokens that had been computed when a park dropped its state; while it is out."""
    last_recomputed: int = 0
    """Of these the ones that had to be computed again after the latest park that has ended."""
    resumed_s: float | None = None
    """When it last came back from a park."""
    stays_since_s: float | None = None
    """When it ended, if it is kept for its owner."""
    num_generated_at_resume: int = 0

    @property
    def line_key(self) -> tuple[int, int]:
        """Place in every line: the lower priority number first, then the earlier arrival."""
        return (self.priority, self.arrival)

    @property
    def num_generated(self) -> int:
        return len(self.token_ids) + self.num_discarded - self.num_prompt

    @property
    def num_uncomputed(self) -> int:
        return len(self.token_ids) - self.num_computed

    @property
    def is_being_read(self) -> bool:
        """Whether outputs of its prompt are still wanted."""
        return self.num_read < self.read_until

    @property
    def num_wanted(self) -> int:
        """Tokens it would compute in one step."""
        if self.read_tokens is None or not self.is_being_read:
            return self.num_uncomputed
        return min(self.num_uncomputed, self.read_tokens)

    @property
    def findable_ids(self) -> list[int]:
        """The tokens whose pages may be taken from others: one whose output is wanted must be computed here."""
        return self.token_ids[: self.num_read + 1] if self.is_being_read else self.token_ids

    @property
    def is_generating(self) -> bool:
        """Past its prompt, and not reading again what it had when it was parked. A context shift does not count."""
        is_reading = self.num_uncomputed > 1 and not self.num_discarded
        return self.num_generated > 0 and not is_reading

    @property
    def party(self) -> Party:
        """Those who come and go with it: itself, and the siblings in the same status, first one first."""
        if self.family is None:
            return (self,)
        return tuple(seq for seq in self.family.members if seq.status is self.status)

    @property
    def has_ended(self) -> bool:
        return self.status is SeqStatus.FINISHED

    @property
    def is_staying(self) -> bool:
        """Whether it has said all, and is kept for its owner: in the pool, or as anybody parked is."""
        return self.stays_since_s is not None and not self.has_ended

    def waited_s(self, now_s: float) -> float:
        """Seconds spent outside the pool so far, in line and parked."""
        if self.started_s is None:
            return now_s - self.arrival_s
        out_s = now_s - self.parked.since_s if self.parked is not None else 0.0
        return self.started_s - self.arrival_s + self.parked_s + out_s

    def stretch_s(self, now_s: float) -> float:
        """Seconds of the present stretch outside the pool."""
        return now_s - (self.parked.since_s if self.parked is not None else self.arrival_s)

    def move_to(self, status: SeqStatus) -> None:
        """Change the status; raises ValueError on a move that LEGAL_MOVES does not have."""
        if status not in LEGAL_MOVES[self.status]:
            raise ValueError(
                f"{self.request_id}: {self.status.value} -> {status.value} is no legal move"
            )
        self.status = status


Party = tuple[Sequence, ...]


@dataclass(slots=True, eq=False)
class Family:
    """Siblings: replies to one request (n > 1). They share the pages of its prompt and are never parked in part."""

    members: Party
    """In line order; those that have ended stay listed."""

    @staticmethod
    def unite(sequences: Iterable[Sequence]) -> Family:
        """Make siblings of sequences with one prompt, before they are added. Raises ValueError if it is not one."""
        family = Family(tuple(sorted(sequences, key=lambda seq: seq.line_key)))
        if len({tuple(seq.token_ids) for seq in family.members}) > 1:
            raise ValueError("siblings must have the same prompt")
        for seq in family.members:
            seq.family = family
        return family

    @property
    def alive(self) -> Party:
        return tuple(seq for seq in self.members if not seq.has_ended)

    @property
    def is_running(self) -> bool:
        return any(seq.status is SeqStatus.RUNNING for seq in self.members)

    @property
    def is_out(self) -> bool:
        """Whether somebody of it is parked, or on the way out or back; back is who has nothing saved any more."""
        return any(seq.status in IS_OUT or seq.saved for seq in self.members)

    @property
    def has_ended(self) -> bool:
        return not self.alive


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
    num_outputs: int = field(init=False)
    """Of how many of its tokens, the last ones, the model's output is wanted."""

    def __post_init__(self) -> None:
        seq, stop = self.seq, self.start + self.count
        samples = stop == len(seq.token_ids) and seq.num_generated < seq.max_new_tokens
        object.__setattr__(self, "samples", samples)
        is_read = seq.num_read < seq.read_until and seq.num_read < stop
        object.__setattr__(self, "num_outputs", self.count if is_read else int(samples))


@dataclass(frozen=True, slots=True)
class SeqEnd:
    """A sequence that the scheduler ended itself, with what a person needs to be told."""

    seq: Sequence
    reason: EndReason
    needed_tokens: int
    """Tokens that it and its siblings would have had to hold."""
    limit_tokens: int
    """Tokens that the whole pool holds."""
    waited_s: float


@dataclass(frozen=True, slots=True)
class StepBatch:
    """What one step does: copies first, in order, then the rows.

    `ended`, `started`, `restored` and `parked` are the sequences whose status changed since the
    batch before, to be reported in this order.
    """

    step: int
    rows: tuple[StepRow, ...]
    copies: tuple[PageCopy, ...] = ()
    ended: tuple[SeqEnd, ...] = ()
    started: tuple[Sequence, ...] = ()
    restored: tuple[Sequence, ...] = ()
    """Back in the steps; a park that was recompute reads its tokens again first."""
    parked: tuple[Sequence, ...] = ()
    """Out of the steps from now on; `Sequence.parked` says why."""
    awaits_copies: bool = False
    """Without rows: nothing moves before a copy has landed, except by a command."""
    is_steady: bool = False
    """Nothing has moved or is to be copied; who is in the pool writes one token of a reply, on a page that it has."""
    wake_s: float | None = None
    """Without rows: when to plan the next step though nothing happens; None: only when something does."""

    @property
    def is_empty(self) -> bool:
        """Nothing to compute: nobody is alive, or all who are wait for a copy, a moment or a command."""
        return not self.rows

    @property
    def num_tokens(self) -> int:
        return len(self.rows) if self.is_steady else sum(row.count for row in self.rows)

    @property
    def num_replies(self) -> int:
        """Rows that compute one token and sample the next: replies that go on, as against parts of prompts."""
        if self.is_steady:
            return len(self.rows)
        return sum(row.count == 1 and row.samples for row in self.rows)

    def of_running(self) -> StepBatch:
        """The batch without what concerns sequences that could not be restored for it after all."""
        is_whole = all(row.seq.status is SeqStatus.RUNNING for row in self.rows)
        if is_whole and not self.restored and not self.started:
            return self
        rows = tuple(row for row in self.rows if row.seq.status is SeqStatus.RUNNING)
        restored = tuple(seq for seq in self.restored if seq.status is SeqStatus.RUNNING)
        started = tuple(seq for seq in self.started if seq.status is SeqStatus.RUNNING)
        return replace(self, rows=rows, restored=restored, started=started)

    @property
    def sampling_rows(self) -> tuple[StepRow, ...]:
        return self.rows if self.is_steady else tuple(row for row in self.rows if row.samples)


class SeqUpdate(NamedTuple):
    """What `Scheduler.update` did to one sequence: the token appended (if any) and whether it ended."""

    seq: Sequence
    token_id: int | None
    finish: FinishReason | None
