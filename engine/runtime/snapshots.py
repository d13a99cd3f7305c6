"""What the engine shows of itself after each step. Engine thread only; imports no tensor library.

The list of runs is made anew when an event changes it, and otherwise ten times a second, since it costs more than all
the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
from engine.core.types import Sequence
from engine.runs import Run, RunState
from engine.runtime.live_request import LiveRequest
from engine.runtime.rate_meter import RateMeter

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel

_RUNS_EVERY_S = 0.1


class SnapshotMaker:
    """Remembers the last list of runs."""

    def __init__(self, rate: RateMeter) -> None:
        self._rate = rate
        self._runs: tuple[Run, ...] = ()
        self._runs_s = 0.0

    def make(
        self,
        state: EngineState,
        model: LoadedModel | None,
        live: Collection[LiveRequest],
        *,
        now_s: float,
        events: Iterable[EngineEvent],
    ) -> EngineSnapshot:
        """The engine now. `events` are those since the last one."""
        if model is None:
            self._runs = ()
            return EngineSnapshot(state=state)
        is_stale = now_s - self._runs_s >= _RUNS_EVERY_S or len(live) != len(self._runs)
        if is_stale or not all(isinstance(one, TokenDelta | PromptProgress) for one in events):
            self._runs = self._list_runs(model, live, now_s)
            self._runs_s = now_s
        scheduler, runner = model.scheduler, model.runner
        return EngineSnapshot(
            state=state,
            model=model.info,
            options=model.options,
            window_tokens=runner.window_tokens,
            inexact_ops=runner.inexact_ops,
            pool=_pool_usage(model),
            waiting=scheduler.num_waiting,
            running=scheduler.num_running,
            parked=scheduler.num_parked,
            parks=scheduler.park_usage(),
            runs=self._runs,
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
    state = explainer.state(seq)
    assert state is not None, f"{seq.request_id} has ended and is listed"
    return Run(
        request_id=seq.request_id,
        origin=request.origin,
        priority=Priority(seq.priority),
        state=state,
        prompt_tokens=seq.num_prompt,
        held_tokens=len(seq.token_ids),
        completion_tokens=seq.num_generated,
        is_pinned=seq.is_pinned,
        num_parks=seq.num_parks,
        num_recomputes=seq.num_recomputes,
        waited_s=seq.waited_s(now_s),
        wait=explainer.wait_reason(seq),
        expected_wait_s=_expected_wait(seq, explainer, tokens_s, now_s),
    )


def _expected_wait(
    seq: Sequence, explainer: Explainer, tokens_s: float, now_s: float
) -> tuple[float, float | None] | None:
    outlook = explainer.outlook(seq)
    if outlook is None or not tokens_s:
        return None
    since_s = seq.arrival_s if seq.parked is None else seq.parked.since_s
    return expected_wait_s(outlook, tokens_s=tokens_s, waited_s=now_s - since_s)


def _pool_usage(model: LoadedModel) -> PoolUsage:
    usage = model.scheduler.pool.usage()
    return replace(usage, page_bytes=model.runner.page_bytes)
