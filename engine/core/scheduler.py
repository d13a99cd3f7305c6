"""Decides who computes what in each step, who waits and who is parked. Pure: frozen plans out.

Owned by the engine thread, which calls `schedule`, runs the step, then `update` (or `fail`); all
else comes between steps: `add`, `abort`, `finish`, `steer`, and what became of copies. Times are
arguments. Every sequence that is added leaves exactly once: through `update`, `finish`, `abort`,
`fail` or `StepBatch.ended`. It imports no tensor library, clock, thread or log.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

from engine.core.admission import Admission
from engine.core.budget import StepBudget
from engine.core.config import Knobs, SchedulerConfig
from engine.core.entrance import Entrance
from engine.core.explain import Explainer
from engine.core.kv_pool import KVPool
from engine.core.parked import Fate, ParkedState, Released
from engine.core.parking import Parking
from engine.core.patience import Patience
from engine.core.pressure import Needs, Pressure
from engine.core.stays import Stays
from engine.core.steady import Still, find_still, steady_rows
from engine.core.steering import Steering
from engine.core.stop import finish_reason, shift_context
from engine.core.types import (
    IS_OUT,
    SeqStatus,
    Sequence,
    SeqUpdate,
    StepBatch,
    StepRow,
)
from engine.core.yard import Moves, Yard
from engine.runs import ParkCause, ParkReason, ParkUsage, SteeringCommand


class Scheduler:
    """Continuous batching over one page pool.

    Parked sequences return before waiting ones of the same priority enter, and nobody passes the
    head of the line. Progress: one party in the pool, the leader, is never parked to make room for
    a step, and where nothing is in the pool the head enters.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self._yard = Yard.make(config)
        self._parking = Parking(self._yard)
        self._entrance = Entrance(self._yard, self._parking)
        self._pressure = Pressure(self._yard, self._parking)
        self._steering = Steering(self._yard, self._parking)
        self._patience = Patience(self._yard, self._parking)
        self._stays = Stays(self._yard, self._parking)
        self._has_knobs = config.knobs != Knobs()
        self._still: Still | None = None
        """Of the latest whole plan, if nobody has come and nothing been commanded since."""

    # --- what is there

    @property
    def pool(self) -> KVPool:
        return self._yard.pool

    @property
    def is_idle(self) -> bool:
        """Nobody is alive, nobody stays for its owner, and no end is left to be reported by a step.

        Copies may still be under way for sequences that have ended.
        """
        return self._yard.lines.is_empty and not self._yard.moves.ended

    @property
    def live(self) -> tuple[Sequence, ...]:
        """Every sequence that has not ended, in order of `add`."""
        return self._yard.lines.live

    @property
    def num_waiting(self) -> int:
        return len(self._yard.lines[SeqStatus.WAITING])

    @property
    def num_running(self) -> int:
        return len(self._yard.lines[SeqStatus.RUNNING])

    @property
    def num_replies(self) -> int:
        """Running sequences that need one token: replies that go on, as against prompts being read."""
        return sum(seq.num_uncomputed == 1 for seq in self._yard.running)

    @property
    def num_parked(self) -> int:
        """Out because of a park: parked, on the way out or on the way back. Whoever stays for its owner is not."""
        lines = self._yard.lines
        return sum(not seq.is_staying for status in IS_OUT for seq in lines[status])

    @property
    def has_outside(self) -> bool:
        """Whether anybody is parked or waits."""
        return self._yard.lines.has_outside

    def line(self, status: SeqStatus) -> tuple[Sequence, ...]:
        """All sequences of a status but FINISHED, by priority and arrival."""
        return tuple(self._yard.lines[status])

    @property
    def admission(self) -> Admission | None:
        """The latest answer to a head of the line: if not admitted, what it waits for."""
        return self._entrance.admission

    def explain(self) -> Explainer:
        """Answers about those outside the pool as of the last step: place, reason, outlook."""
        return Explainer(self._yard, self._entrance)

    def park_usage(self) -> ParkUsage:
        """What parked sequences hold, and how often it has come to that."""
        counts = self._yard.counts
        return ParkUsage(
            budget_bytes=self._yard.budget_bytes,
            is_async=self.config.park.is_async and not any(seq.parks_in_step for seq in self.live),
            used_bytes=self._yard.keeper.used_bytes,
            num_parks=counts.parks,
            num_resumes=counts.resumes,
            num_recomputes=counts.recomputes,
            num_rotations=counts.rotations,
            num_last_resorts=counts.last_resorts,
        )

    # --- coming and going

    def add(self, seq: Sequence) -> None:
        """Put a new sequence in line.

        Raises ValueError if its id is alive, or its prompt is empty or longer than a sequence may
        be.
        """
        self._check_prompt(seq)
        self._still = None
        self._yard.lines.add(seq)
        self._patience.watch(seq)

    def follow(self, seq: Sequence, earlier_id: str, now_s: float) -> None:
        """Put a new sequence at the head of the line, to go on with what is kept of one that stays for its owner.

        As far as their tokens agree nothing is computed again; the one that stayed has ended then. The same as `add`
        where nobody of that id stays. Raises ValueError as `add` does.
        """
        self._check_prompt(seq)
        self._still = None
        self._settle(now_s)
        if self._stays.follow(seq, earlier_id):
            self._patience.watch(seq)
        else:
            self.add(seq)

    def adopt(self, seq: Sequence, now_s: float) -> None:
        """Put a new sequence in line as one that is parked, with the tokens it has: the model it had was unloaded.

        Pages of it that were kept elsewhere can be planted before; see `engine.core.planting`. Raises ValueError if
        its id is alive, or it has more tokens than a sequence may have.
        """
        limit = self.config.sequence_tokens
        if not 1 <= len(seq.token_ids) <= limit:
            raise ValueError(
                f"{seq.request_id} has {len(seq.token_ids)} tokens, allowed is 1 to {limit}"
            )
        reason = ParkReason(cause=ParkCause.ON_DISK)
        seq.status = SeqStatus.PARKED
        seq.started_s = seq.arrival_s
        seq.parked = ParkedState(now_s, self._yard.step, Fate.RECOMPUTE, reason, len(seq.token_ids))
        self._yard.lines.add(seq)
        self._yard.counts.parks += 1
        self._yard.moves.parked.append(seq)
        self._patience.watch(seq)

    def abort(self, request_id: str, now_s: float) -> Sequence | None:
        """End a sequence in any state and free all it holds; None if the id is not alive.

        Pages and buffers that a copy is using come free when it lands.
        """
        self._settle(now_s)
        seq = self._yard.lines.find(request_id)
        if seq is not None:
            self._parking.end(seq)
        return seq

    def finish(self, seq: Sequence) -> None:
        """End a running sequence for a reason that only the runtime sees, a stop string.

        Does nothing if it has ended already. What it computed stays reusable.
        """
        if seq.status is SeqStatus.RUNNING:
            self._stays.end(seq)

    def steer(self, command: SteeringCommand, now_s: float) -> bool:
        """Carry out a command by hand, in effect from the next step; False if it concerns nobody alive."""
        self._still = None
        self._settle(now_s)
        return self._steering.apply(command)

    # --- a step

    def schedule(self, now_s: float, *, beside_replies: int | None = None) -> StepBatch:
        """Settle the next step: statuses are moved and pages taken.

        `beside_replies` is how many tokens of prompts it may hold beside replies that went on
        before these were asked, so that replies keep their pace; None: as many as any other step.
        With 0 such prompts stand still while a reply goes on.

        Without rows nobody is alive, or all who are wait for a copy, a moment or a command.
        """
        if (steady := self._steady(now_s)) is not None:
            return steady
        yard = self._yard
        yard.step += 1
        most = self.config.step_tokens
        yard.budget = StepBudget(most, most if beside_replies is None else beside_replies)
        self._settle(now_s)
        self._parking.honour_budget()
        self._patience.end_impatient()
        self._stays.keep_time()
        if yard.lines.has_outside:
            self._entrance.let_in()
        self._park_on_demand()
        batch = self._build(*self._pressure.make_room())
        self._still = find_still(yard, self._entrance.admission)
        return batch

    def last_resort(self, batch: StepBatch, now_s: float) -> StepBatch:
        """The step of `batch` found no memory after all, its copies being made: plan it anew with less.

        Its rows are rewound to where they stood, and prefixes that nobody uses are forgotten. Where
        that frees nothing, or fewer pages with memory behind them than the step needs, somebody is
        parked, his state dropped if it is kept in the same memory; somebody alone ends. So every
        call frees something, as long as anybody is in the pool.
        """
        self._settle(now_s)
        return self._build(*self._pressure.last_resort(batch.rows))

    def update(self, batch: StepBatch, token_ids: Seq[int], now_s: float) -> tuple[SeqUpdate, ...]:
        """Enter the result of a step: one token for each sampling row, in row order; returns what became of each row.

        Sequences that have ended since `schedule` are passed over. Raises ValueError, with nothing
        changed, if the number of tokens is wrong.
        """
        num_sampling = len(batch.sampling_rows)
        if len(token_ids) != num_sampling:
            raise ValueError(f"{len(token_ids)} tokens for {num_sampling} sampling rows")
        if batch.is_steady:
            self._yard.now_s = now_s
        else:
            self._settle(now_s)
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
        self._yard.keeper.land_step()
        failed = tuple(row.seq for row in batch.rows if row.seq.status is SeqStatus.RUNNING)
        for seq in failed:
            self._parking.end(seq)
        return failed

    # --- copies and memory

    def copy_landed(self, copy_id: int, now_s: float) -> None:
        """A copy that a batch ordered has been made. Only needed where it need not land before the step."""
        self._yard.now_s = now_s
        self._parking.copy_landed(copy_id)

    def copy_failed(self, copy_id: int, now_s: float) -> None:
        """A copy could not be made, for want of host memory or otherwise.

        A park loses its state and becomes a recompute. A restore is undone and tried again later:
        of the batch that ordered it only `StepBatch.of_running` holds.
        """
        self._yard.now_s = now_s
        self._parking.copy_failed(copy_id)

    def buffer_is_pageable(self, request_id: str) -> None:
        """The host buffer of a request is not pinned: its copies must land before a step from now on."""
        seq = self._yard.lines.find(request_id)
        if seq is not None:
            seq.parks_in_step = True

    def collect_released(self) -> Released:
        """Memory to be given back before the next step runs; to be asked after `schedule` and when all is quiet."""
        return Released(self.pool.collect_cold(), self._yard.keeper.take_dropped())

    def check(self) -> None:
        """Recount everything. Raises AssertionError, with the numbers, on whatever is wrong."""
        self._yard.check()

    # --- how

    def _check_prompt(self, seq: Sequence) -> None:
        limit = self.config.sequence_tokens
        if not 1 <= seq.num_prompt <= limit:
            raise ValueError(
                f"{seq.request_id}: the prompt has {seq.num_prompt} tokens, allowed is 1 to {limit}"
            )

    def _settle(self, now_s: float) -> None:
        """It is `now_s`, and the copies of the last batch that had to land have been made."""
        self._yard.now_s = now_s
        self._yard.keeper.land_step()

    def _steady(self, now_s: float) -> StepBatch | None:
        """The next step as a whole plan would settle it; None, and nothing changed, if that is not seen at a glance."""
        yard = self._yard
        rows = steady_rows(yard, self._still, now_s) if not self._has_knobs else None
        if rows is None:
            return None
        yard.now_s = now_s
        yard.step += 1
        return StepBatch(step=yard.step, rows=rows, is_steady=True)

    def _park_on_demand(self) -> None:
        """Park who is to be parked by hand, or by a test; whoever has just come back has a step first."""
        yard, every = self._yard, self.config.knobs.park_every_tokens
        if not (every or yard.has_wishes) or not yard.can_park:
            return
        yard.has_wishes = any(seq.wants_park for seq in yard.lines[SeqStatus.RESTORING])
        entered = {*yard.moves.started, *yard.moves.restored}
        for party in yard.running_parties():
            is_wanted = any(seq.wants_park for seq in party)
            if entered.intersection(party):
                yard.has_wishes |= is_wanted
            elif is_wanted or (every and any(_is_due(seq, every) for seq in party)):
                cause = ParkCause.BY_USER if is_wanted else ParkCause.FORCED
                fate = self._parking.candidate(party, 0).fate
                self._parking.park(party, fate, ParkReason(cause=cause))

    def _build(self, rows: tuple[StepRow, ...], needs: Needs) -> StepBatch:
        """Take the pages of the step and report what has moved."""
        yard = self._yard
        for seq, count in needs.items():
            pages = yard.pool.take(count)
            assert pages is not None, f"{seq.request_id} needs {count} pages of {yard.pool.usage()}"
            seq.page_table += pages
        moves, yard.moves = yard.moves, Moves()
        return StepBatch(
            step=yard.step,
            rows=rows,
            copies=yard.keeper.take_orders(),
            ended=tuple(moves.ended),
            started=tuple(moves.started),
            restored=tuple(moves.restored),
            parked=tuple(moves.parked),
            awaits_copies=not rows and yard.keeper.holds_pages,
            wake_s=self._wake_s(moves) if not rows else None,
        )

    def _wake_s(self, moves: Moves) -> float | None:
        """When to plan again after a step without rows: at once if it made room, else when time changes something."""
        if moves.ended or moves.parked:
            return self._yard.now_s
        moments = (self._patience.wake_s(), self._stays.wake_s())
        return min((one for one in moments if one is not None), default=None)

    def _advance(self, row: StepRow, token_id: int | None, now_s: float) -> SeqUpdate:
        """Enter one row's result: publish the pages it filled, append its token, end it if that was all."""
        seq, pool = row.seq, self._yard.pool
        size = pool.page_tokens
        seq.num_computed = row.start + row.count
        if seq.num_read < seq.read_until:
            seq.num_read = max(seq.num_read, seq.num_computed)
        while seq.num_published < seq.num_computed // size:
            first = seq.num_published * size
            pool.publish(
                seq.page_table, seq.num_published, tuple(seq.token_ids[first : first + size])
            )
            seq.num_published += 1
        if token_id is not None:
            seq.token_ids.append(token_id)
            if seq.first_token_s is None:
                seq.first_token_s = now_s
        limit = self.config.sequence_tokens
        finish = finish_reason(seq, token_id, limit)
        if finish is not None:
            self._stays.end(seq)
        elif token_id is not None and len(seq.token_ids) >= limit:
            self._parking.drop_pages(seq)
            shift_context(seq)
        return SeqUpdate(seq, token_id, finish)


def _is_due(seq: Sequence, every_tokens: int) -> bool:
    """Whether a test wants it parked: each time it has generated so many tokens."""
    return seq.is_generating and seq.num_generated >= (seq.num_parks + 1) * every_tokens
