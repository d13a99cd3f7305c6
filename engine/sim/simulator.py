"""Runs the real scheduler on a virtual clock: what it decides takes as long as the cost model says.

No tensor, no waiting, no dice: the same trace and settings give the same result. The tokens are
made up; a reply ends where its trace says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.core.config import ParkConfig, ParkMemory, SchedulerConfig
from engine.core.cost_model import Calibration, CostModel
from engine.core.parked import CopyWay, PageCopy
from engine.core.scheduler import Scheduler
from engine.core.types import Sequence, StepBatch
from engine.sim.traces import Trace

_EOS = 0
_WORD = 1
MOST_STEPS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run came to. Times are seconds of the virtual clock; tokens are cells of the pool."""

    makespan_s: float
    mean_completion_s: float
    longest_wait_s: float
    """Longest stretch that somebody was outside the pool: in line, or parked."""
    parks: float
    """A whole number, as are rotations; means of several outcomes are none."""
    rotations: float
    tokens_copied: int
    """Out of the pool and back."""
    tokens_recomputed: int
    tokens_generated: int


@dataclass(slots=True)
class _Chat:
    seq: Sequence
    reply_tokens: int
    out_since_s: float | None


@dataclass(slots=True)
class Simulator:
    """Plays one trace. Made anew for each run."""

    config: SchedulerConfig
    trace: Trace
    calibration: Calibration
    _chats: dict[str, _Chat] = field(default_factory=dict)
    _landings: dict[int, float] = field(default_factory=dict)
    _completions: list[float] = field(default_factory=list)
    _now_s: float = 0.0
    _longest_wait_s: float = 0.0
    _parks: int = 0
    _tokens_copied: int = 0
    _tokens_recomputed: int = 0
    _tokens_generated: int = 0

    def run(self) -> Outcome:
        """Play the trace to its end. Raises ValueError if a chat does not fit the window."""
        scheduler = Scheduler(self.config)
        cost = CostModel(self.calibration)
        coming = list(reversed(self.trace.arrivals))
        for _ in range(MOST_STEPS):
            if scheduler.is_idle:
                if not coming:
                    return self._outcome(scheduler)
                self._now_s = max(self._now_s, coming[-1].at_s)
            while coming and coming[-1].at_s <= self._now_s:
                self._arrive(scheduler, len(self.trace.arrivals) - len(coming))
                coming.pop()
            self._step(scheduler, cost)
        raise RuntimeError(f"{self.trace.name} has not ended after {MOST_STEPS} steps")

    def _arrive(self, scheduler: Scheduler, index: int) -> None:
        arrival = self.trace.arrivals[index]
        room = self.config.sequence_tokens - arrival.prompt_tokens
        seq = Sequence(
            request_id=f"chat{index}",
            token_ids=[index + 2] * arrival.prompt_tokens,
            num_prompt=arrival.prompt_tokens,
            max_new_tokens=min(arrival.reply_tokens, room) if arrival.is_limited else room,
            eos_ids=frozenset({_EOS}),
            priority=1,
            arrival=index,
            arrival_s=arrival.at_s,
        )
        scheduler.add(seq)
        self._chats[seq.request_id] = _Chat(seq, arrival.reply_tokens, arrival.at_s)

    def _step(self, scheduler: Scheduler, cost: CostModel) -> None:
        """Plan a step, let it take its time, and enter its result."""
        for copy_id, at_s in tuple(self._landings.items()):
            if at_s <= self._now_s:
                del self._landings[copy_id]
                scheduler.copy_landed(copy_id, self._now_s)
        batch = scheduler.schedule(self._now_s)
        self._note_moves(batch)
        for order in batch.copies:
            self._copy(order, cost)
        self._now_s += cost.step_s((row.start, row.count) for row in batch.rows)
        if batch.is_empty and self._landings:
            self._now_s = max(self._now_s, min(self._landings.values()))
        tokens = [self._next_token(row.seq) for row in batch.sampling_rows]
        for update in scheduler.update(batch, tokens, self._now_s):
            self._tokens_generated += update.token_id is not None
            if update.finish is not None:
                self._completions.append(self._now_s - update.seq.arrival_s)
        scheduler.collect_released()

    def _note_moves(self, batch: StepBatch) -> None:
        for seq in (*batch.started, *batch.restored):
            chat = self._chats[seq.request_id]
            assert chat.out_since_s is not None, f"{seq.request_id} came in twice"
            self._longest_wait_s = max(self._longest_wait_s, self._now_s - chat.out_since_s)
            chat.out_since_s = None
        self._tokens_recomputed += sum(seq.last_recomputed for seq in batch.restored)
        for seq in batch.parked:
            self._chats[seq.request_id].out_since_s = self._now_s
        self._parks += len(batch.parked)

    def _copy(self, order: PageCopy, cost: CostModel) -> None:
        """Charge a copy to the clock, or let it land later."""
        tokens = len(order.pages) * self.config.page_tokens
        self._tokens_copied += tokens
        price = cost.park_s if order.way is CopyWay.OUT else cost.restore_s
        seconds = price(tokens, is_copied=True)
        if order.must_land:
            self._now_s += seconds
        else:
            self._landings[order.copy_id] = self._now_s + seconds

    def _next_token(self, seq: Sequence) -> int:
        is_last = seq.num_generated + 1 >= self._chats[seq.request_id].reply_tokens
        return _EOS if is_last else _WORD

    def _outcome(self, scheduler: Scheduler) -> Outcome:
        return Outcome(
            makespan_s=self._now_s,
            mean_completion_s=sum(self._completions) / max(len(self._completions), 1),
            longest_wait_s=self._longest_wait_s,
            parks=self._parks,
            rotations=scheduler.park_usage().num_rotations,
            tokens_copied=self._tokens_copied,
            tokens_recomputed=self._tokens_recomputed,
            tokens_generated=self._tokens_generated,
        )


def park_config(
    memory: ParkMemory, calibration: Calibration, *, page_tokens: int, budget_tokens: int
) -> ParkConfig:
    """How a simulated machine parks: in place, by copy or by recompute, within a budget in tokens."""
    page_bytes = calibration.token_bytes * page_tokens
    return ParkConfig(
        memory=memory, page_bytes=page_bytes, budget_bytes=budget_tokens * calibration.token_bytes
    )
