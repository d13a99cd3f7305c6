"""What the engine shows of itself after each step. Engine thread only; imports no tensor library.

While nothing but tokens come, it is made anew ten times a second: that is as often as anybody looks, and each costs as
much as planning a step.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.api import (
    EngineEvent,
    EngineSnapshot,
    EngineState,
    PoolUsage,
    Priority,
    PromptProgress,
    TokenDelta,
)
from engine.core.cost_model import expected_wait_s
from engine.core.explain import Explainer
from engine.core.types import SeqStatus, Sequence
from engine.runs import Run, RunState
from engine.runtime.live_request import LiveRequest
from engine.runtime.rate_meter import RateMeter

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel

_EVERY_S = 0.1
_STATES = {
    SeqStatus.WAITING: RunState.QUEUED,
    SeqStatus.PARKING: RunState.BEING_PARKED,
    SeqStatus.PARKED: RunState.PARKED,
    SeqStatus.RESTORING: RunState.BEING_RESTORED,
}


class SnapshotMaker:
    """Remembers the last one."""

    def __init__(self, rate: RateMeter) -> None:
        self._rate = rate
        self._last = EngineSnapshot()
        self._last_s = 0.0

    def make(
        self,
        state: EngineState,
        model: LoadedModel | None,
        live: Collection[LiveRequest],
        *,
        now_s: float,
        events: Collection[EngineEvent],
    ) -> EngineSnapshot:
        """The engine now, or a moment ago. `events` are those since the last one; none: something else has changed."""
        if model is None:
            self._last = EngineSnapshot(state=state)
        elif (
            now_s - self._last_s >= _EVERY_S
            or len(live) != len(self._last.runs)
            or not events
            or not all(isinstance(one, TokenDelta | PromptProgress) for one in events)
        ):
            self._last = self._make(state, model, live, now_s)
            self._last_s = now_s
        return self._last

    def _make(
        self, state: EngineState, model: LoadedModel, live: Collection[LiveRequest], now_s: float
    ) -> EngineSnapshot:
        scheduler, runner = model.scheduler, model.runner
        most = runner.plan.most_budget_bytes
        return EngineSnapshot(
            state=state,
            model=model.info,
            options=model.options,
            window_tokens=runner.window_tokens,
            kernels=runner.kernels,
            inexact_ops=runner.inexact_ops,
            pool=_pool_usage(model),
            waiting=scheduler.num_waiting,
            running=scheduler.num_running,
            parked=scheduler.num_parked,
            parks=replace(scheduler.park_usage(), most_budget_bytes=most),
            runs=self._list_runs(model, live, now_s),
            saved_ids=model.disk.earlier_ids if model.disk is not None else (),
            tokens_per_s=self._rate.rate(now_s),
        )

    def _list_runs(
        self, model: LoadedModel, live: Collection[LiveRequest], now_s: float
    ) -> tuple[Run, ...]:
        if not live:
            return ()
        scheduler = model.scheduler
        explainer = scheduler.explain()
        speed = self._rate.rate(now_s) / max(scheduler.num_running, 1)
        return tuple(_run(one, explainer, speed, now_s) for one in live)


def _run(live: LiveRequest, explainer: Explainer, tokens_s: float, now_s: float) -> Run:
    """`tokens_s` is the measured speed of one reply, 0 where none was measured."""
    request = live.request
    if live.generation is None:
        return Run(
            request_id=request.request_id,
            origin=request.origin,
            priority=request.priority,
            state=RunState.QUEUED,
            prompt_tokens=0,
            held_tokens=0,
            completion_tokens=0,
            is_pinned=False,
            num_parks=0,
            num_recomputes=0,
            waited_s=now_s - live.arrival_s,
        )
    seq = live.generation.seq
    return Run(
        request_id=seq.request_id,
        origin=request.origin,
        priority=Priority(seq.priority),
        state=_state(seq),
        prompt_tokens=seq.num_prompt,
        held_tokens=len(seq.token_ids),
        completion_tokens=seq.num_generated,
        is_pinned=seq.is_pinned,
        num_parks=seq.num_parks,
        num_recomputes=seq.num_recomputes,
        waited_s=seq.waited_s(now_s),
        wait=explainer.wait_reason(seq),
        expected_wait_s=_expected_wait(seq, explainer, tokens_s),
    )


def _state(seq: Sequence) -> RunState:
    if seq.status is SeqStatus.RUNNING:
        return RunState.WRITING if seq.is_generating else RunState.READING
    return _STATES[seq.status]


def _expected_wait(
    seq: Sequence, explainer: Explainer, tokens_s: float
) -> tuple[float, float] | None:
    outlook = explainer.outlook(seq)
    return expected_wait_s(outlook, tokens_s=tokens_s) if outlook is not None and tokens_s else None


def _pool_usage(model: LoadedModel) -> PoolUsage:
    usage = model.scheduler.pool.usage()
    return replace(usage, page_bytes=model.runner.page_bytes)
