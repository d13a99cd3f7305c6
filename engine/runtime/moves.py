"""What a plan has moved, as events for those it concerns. Engine thread only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from engine.api import EngineEvent, Parked, Restored, Started
from engine.core.parked import EndReason
from engine.core.scheduler import Scheduler
from engine.core.types import SeqEnd, Sequence, StepBatch
from engine.errors import EngineError, PoolFull, RestoreFailed, WaitedTooLong
from engine.runtime.live_request import Generation

_LEAST_RETRY_S = 1.0


def report_moves(
    batch: StepBatch, scheduler: Scheduler, generation_of: Callable[[Sequence], Generation]
) -> Iterator[EngineEvent]:
    """Who started, came back or was parked by the plan of this step."""
    for seq in batch.started:
        yield Started(
            request_id=seq.request_id,
            prompt_tokens=seq.num_prompt,
            cached_tokens=seq.num_cached,
            queued_s=(seq.started_s or seq.arrival_s) - seq.arrival_s,
        )
    for seq in batch.restored:
        generation = generation_of(seq)
        was_dropped = seq.num_recomputes > generation.num_recomputes_told
        generation.num_recomputes_told = seq.num_recomputes
        yield Restored(
            request_id=seq.request_id,
            parked_s=seq.last_park_s,
            recomputed_tokens=seq.num_uncomputed if was_dropped else 0,
        )
    if not batch.parked:
        return
    explainer = scheduler.explain()
    for seq in batch.parked:
        if seq.parked is not None:
            yield Parked(
                request_id=seq.request_id,
                held_tokens=seq.parked.held_tokens,
                place=explainer.place(seq),
                reason=seq.parked.reason,
            )


def error_of(end: SeqEnd) -> EngineError:
    """What a request is told that the scheduler ended."""
    match end.reason:
        case EndReason.POOL_FULL:
            return _pool_full(
                end,
                f"The request holds {end.needed_tokens:,} tokens, the pool of {end.limit_tokens:,} tokens is full, and "
                "nobody can be parked for it; allow parked requests more memory (--preempt-ram), or load the model "
                "with a larger pool",
            )
        case EndReason.OUTGREW_POOL:
            return _pool_full(
                end,
                f"The choices of the request hold {end.needed_tokens:,} tokens together and do not fit the pool of "
                f"{end.limit_tokens:,} tokens, even alone; ask for fewer choices (n) or tokens (max_tokens), or load "
                "the model with a larger pool (--ctx-size)",
            )
        case EndReason.WAITED_TOO_LONG:
            return WaitedTooLong(
                f"the request waited {end.waited_s:.1f} s in line or parked, as long as it was willing to; ask "
                "again later, or with a longer max_wait",
                retry_after_s=max(end.waited_s, _LEAST_RETRY_S),
            )
        case EndReason.RESTORE_FAILED:
            return RestoreFailed(
                f"failed to restore the preempted sequence: its state could not be brought back in {end.waited_s:.0f} "
                "s; close other programs to free memory, and ask again"
            )


def _pool_full(end: SeqEnd, why: str) -> PoolFull:
    return PoolFull(
        f"Context size has been exceeded. {why}",
        needed_tokens=end.needed_tokens,
        limit_tokens=end.limit_tokens,
        prompt_tokens=end.seq.num_prompt,
    )
