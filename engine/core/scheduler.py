"""Decides who computes what in each step, who waits and who is parked. Pure: frozen plans out.

Owned by the engine thread, which calls `schedule`, runs the step, then `update` (or `fail`); `add`,
`abort` and `finish` come between steps. Times are arguments. Every sequence that is added leaves
exactly once: through `update`, `finish`, `abort` or `fail`. It imports no tensor library, clock,
thread or log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as Seq

from engine.core.admission import Admission, may_hold, may_sit
from engine.core.budget import share_step, tokens_for_entrant
from engine.core.config import SchedulerConfig
from engine.core.kv_pool import KVPool
from engine.core.lines import Lines
from engine.core.planner import plan_preemption
from engine.core.stop import finish_reason
from engine.core.types import (
    ParkedState,
    PreemptPlan,
    SeqStatus,
    Sequence,
    SeqUpdate,
    StepBatch,
    StepRow,
)
from engine.core.victim_policies import VICTIM_POLICIES


class Scheduler:
    """Continuous batching over one page pool.

    Parked sequences return before waiting ones enter, and nobody passes the head of a line.
    Progress: the first running sequence, the leader, is never parked and gets tokens in every step;
    where nothing runs, the head enters.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self.pool = KVPool(config.num_pages, config.page_tokens)
        self._policy = VICTIM_POLICIES[config.victim_policy]
        self._lines = Lines()
        self._step = 0
        self._admission: Admission | None = None

    # --- what is there

    @property
    def is_idle(self) -> bool:
        return not self._lines.live

    @property
    def live(self) -> tuple[Sequence, ...]:
        """Every sequence that has not ended, in order of `add`."""
        return self._lines.live

    @property
    def num_waiting(self) -> int:
        return len(self._lines[SeqStatus.WAITING])

    @property
    def num_running(self) -> int:
        return len(self._lines[SeqStatus.RUNNING])

    @property
    def num_parked(self) -> int:
        return len(self._lines[SeqStatus.PARKED])

    def line(self, status: SeqStatus) -> tuple[Sequence, ...]:
        """All sequences of a status but FINISHED, in line order: the leader or the head first."""
        return tuple(self._lines[status])

    @property
    def admission(self) -> Admission | None:
        """The latest answer to a head of the line: if not admitted, why it waits."""
        return self._admission

    def place_in_line(self, seq: Sequence) -> int:
        """1 for the next to enter (parked ones, then waiting ones); 0 if it runs or has ended."""
        outside = self._lines[SeqStatus.PARKED] + self._lines[SeqStatus.WAITING]
        return outside.index(seq) + 1 if seq in outside else 0

    # --- coming and going

    def add(self, seq: Sequence) -> None:
        """Put a new sequence in line.

        Raises ValueError if its id is alive, or its prompt is empty or longer than a sequence may
        be.
        """
        limit = self.config.sequence_tokens
        if not 1 <= seq.num_prompt <= limit:
            raise ValueError(
                f"{seq.request_id}: the prompt has {seq.num_prompt} tokens, allowed is 1 to {limit}"
            )
        self._lines.add(seq)

    def abort(self, request_id: str, now_s: float) -> Sequence | None:
        """End a sequence in any state and free all it holds; None if the id is not alive."""
        seq = self._lines.find(request_id)
        if seq is not None:
            self._end_park(seq, now_s)
            self._end(seq)
        return seq

    def finish(self, seq: Sequence) -> None:
        """End a running sequence for a reason that only the runtime sees, a stop string.

        Does nothing if it has ended already. What it computed stays reusable.
        """
        if seq.status is not SeqStatus.FINISHED:
            self._end(seq)

    # --- a step

    def schedule(self, now_s: float) -> StepBatch:
        """Settle the next step: statuses are moved and pages taken. Empty only if nothing is alive."""
        self._step += 1
        rows = share_step(self._running, self.config.step_tokens)
        needs = self._page_needs(rows)
        plan = plan_preemption(self._running, needs, self.pool, self._policy)
        entered: tuple[Sequence, ...] = ()
        if plan is not None:
            self._park(plan, now_s)
            rows = tuple(row for row in rows if row.seq.status is SeqStatus.RUNNING)
            needs = self._page_needs(rows)
        elif entered := self._let_in(now_s):
            rows = share_step(self._running, self.config.step_tokens)
            needs = self._page_needs(rows)
        for seq, count in needs.items():
            pages = self.pool.take(count)
            assert pages is not None, f"{seq.request_id} needs {count} pages of {self.pool.usage()}"
            seq.page_table += pages
        return StepBatch(
            step=self._step,
            rows=rows,
            started=tuple(seq for seq in entered if not seq.num_parks),
            parked=tuple(victim.seq for victim in plan.victims) if plan is not None else (),
            restored=tuple(seq for seq in entered if seq.num_parks),
            plan=plan,
        )

    def update(self, batch: StepBatch, token_ids: Seq[int], now_s: float) -> tuple[SeqUpdate, ...]:
        """Enter the result of a step: one token for each sampling row, in row order; returns what became of each row.

        Sequences that have ended since `schedule` are passed over. Raises ValueError, with nothing
        changed, if the number of tokens is wrong.
        """
        num_sampling = len(batch.sampling_rows)
        if len(token_ids) != num_sampling:
            raise ValueError(f"{len(token_ids)} tokens for {num_sampling} sampling rows")
        sampled = iter(token_ids)
        updates = []
        for row in batch.rows:
            token_id = next(sampled) if row.samples else None
            if row.seq.status is SeqStatus.RUNNING:
                updates.append(self._advance(row, token_id, now_s))
        return tuple(updates)

    def fail(self, batch: StepBatch) -> tuple[Sequence, ...]:
        """The step broke: every sequence that had a row in it ends; returns those that had not ended before.

        Nothing that the step may have written can be found later: pages are published by `update`
        alone.
        """
        failed = tuple(row.seq for row in batch.rows if row.seq.status is SeqStatus.RUNNING)
        for seq in failed:
            self._end(seq)
        return failed

    def check(self) -> None:
        """Recount everything. Raises AssertionError, with the numbers, on whatever is wrong."""
        self._lines.check()
        self.pool.check()
        listed = Counter(page for seq in self.live for page in seq.page_table)
        counted = {page: self.pool.ref_count(page) for page in range(self.pool.num_pages)}
        assert Counter(counted) == listed, f"uses of pages: counted {counted}, listed {listed}"
        assert self.num_running <= self.config.seats, f"{self.num_running} on {self.config.seats}"
        for seq in self.live:
            runs = seq.status is SeqStatus.RUNNING
            held, needed = len(seq.page_table), self.pool.pages_for(seq.num_computed)
            assert held >= needed if runs else held == 0 == needed, (
                f"{seq.request_id} ({seq.status.value}) holds {held} pages, computed {needed}"
            )

    # --- how

    @property
    def _running(self) -> list[Sequence]:
        return self._lines[SeqStatus.RUNNING]

    def _page_needs(self, rows: Seq[StepRow]) -> dict[Sequence, int]:
        """New pages that rows need, for those that need any."""
        needs = {}
        for row in rows:
            count = self.pool.pages_for(row.start + row.count) - len(row.seq.page_table)
            if count > 0:
                needs[row.seq] = count
        return needs

    def _park(self, plan: PreemptPlan, now_s: float) -> None:
        """Carry out a plan. What a victim computed stays reusable until it is taken."""
        for victim in plan.victims:
            seq = victim.seq
            seq.parked = ParkedState(now_s, victim.fate, held_tokens=len(seq.token_ids))
            seq.num_parks += 1
            self._drop_pages(seq)
            self._lines.move(seq, SeqStatus.PARKED)

    def _let_in(self, now_s: float) -> tuple[Sequence, ...]:
        """Let sequences enter, head of the line after head, until one may not."""
        entered = []
        while line := self._lines[SeqStatus.PARKED] or self._lines[SeqStatus.WAITING]:
            seq = line[0]
            self._admission = may_sit(
                len(self._running),
                seats=self.config.seats,
                tokens_left=tokens_for_entrant(self._running, seq, self.config.step_tokens),
            )
            if not self._admission.admitted:
                break
            found = self.pool.find(seq.token_ids)
            self._admission = may_hold(
                self._pages_to_enter(seq, found),
                spare_pages=self._spare_pages(),
                num_running=len(self._running),
            )
            if not self._admission.admitted:
                break
            self._enter(seq, found, now_s)
            entered.append(seq)
        return tuple(entered)

    def _pages_to_enter(self, seq: Sequence, found: Seq[int]) -> int:
        """Usable pages that `seq` takes up to its next token; those `found` cost nothing only while others use them."""
        tokens = min(len(seq.token_ids) + 1, self.config.sequence_tokens)
        return self.pool.pages_for(tokens) - sum(self.pool.ref_count(page) > 0 for page in found)

    def _spare_pages(self) -> int:
        """Usable pages less those that running sequences need for tokens they already have."""
        promised = sum(
            self.pool.pages_for(len(seq.token_ids)) - len(seq.page_table) for seq in self._running
        )
        return self.pool.num_usable - promised

    def _enter(self, seq: Sequence, found: list[int], now_s: float) -> None:
        """Give `seq` a seat and the pages `found` for its beginning."""
        self.pool.share(found)
        seq.page_table = found
        seq.num_computed = len(found) * self.config.page_tokens
        if seq.started_s is None:
            seq.started_s = now_s
            seq.num_cached = seq.num_computed
        self._end_park(seq, now_s)
        self._lines.move(seq, SeqStatus.RUNNING)

    def _advance(self, row: StepRow, token_id: int | None, now_s: float) -> SeqUpdate:
        """Enter one row's result: publish the pages it filled, append its token, end it if that was all."""
        seq = row.seq
        size = self.config.page_tokens
        filled_before = seq.num_computed // size
        seq.num_computed = row.start + row.count
        for index in range(filled_before, seq.num_computed // size):
            tokens = tuple(seq.token_ids[index * size : (index + 1) * size])
            self.pool.publish(seq.page_table, index, tokens)
        if token_id is not None:
            seq.token_ids.append(token_id)
            if seq.first_token_s is None:
                seq.first_token_s = now_s
        finish = finish_reason(seq, token_id, self.config.sequence_tokens)
        if finish is not None:
            self._end(seq)
        return SeqUpdate(seq, token_id, finish)

    def _end_park(self, seq: Sequence, now_s: float) -> None:
        """Close the account of the park that `seq` comes from, if it does."""
        if seq.parked is not None:
            seq.last_park_s = now_s - seq.parked.since_s
            seq.parked_s += seq.last_park_s
            seq.parked = None

    def _end(self, seq: Sequence) -> None:
        self._drop_pages(seq)
        self._lines.move(seq, SeqStatus.FINISHED)

    def _drop_pages(self, seq: Sequence) -> None:
        self.pool.release(seq.page_table)
        seq.page_table = []
        seq.num_computed = 0
