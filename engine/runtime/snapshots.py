"""What the engine shows of itself after each step. Engine thread only; imports no tensor library.

While nothing but tokens come, it is made anew ten times a second: that is as often as anybody looks, and each costs as
much as planning a step. It costs more the more requests there are; see `ListPace`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
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
from engine.core.explain import Explainer
from engine.core.forecast import Forecaster, entry_of
from engine.core.planner import keeps_room
from engine.core.types import Sequence
from engine.runs import Run, RunState
from engine.runtime.live_request import LiveRequest
from engine.runtime.rate_meter import RateMeter

if TYPE_CHECKING:
    from engine.runtime.loaded_model import LoadedModel

_EVERY_S = 0.1

_NO_NEWS = frozenset({TokenDelta, PromptProgress})

_FEW = 64
"""So many requests are listed as soon as anything happens to one of them."""

_REST = 20
"""A list of more is followed by so many times the time it took without one: a twentieth of the thread at the most."""


class ListPace:
    """When the next list of requests is due, so that a long line takes no time from those who run."""

    def __init__(self) -> None:
        self._made_s = -math.inf
        self._rested_s = -math.inf

    def is_due(self, now_s: float, *, num_requests: int, has_news: bool) -> bool:
        """Whether to make one now. `has_news`: something has happened that is not just one token more."""
        if num_requests > _FEW and now_s < self._rested_s:
            return False
        return has_news or now_s - self._made_s >= _EVERY_S

    def note(self, began_s: float, ended_s: float) -> None:
        """One has been made in that time; rest counts from its end, or a slow one would be due again at once."""
        self._made_s = ended_s
        self._rested_s = ended_s + _REST * (ended_s - began_s)


class SnapshotMaker:
    """Remembers the last one."""

    def __init__(self, rate: RateMeter, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._last = EngineSnapshot()
        self._pace = ListPace()
        self._forecaster = Forecaster()

    def make(
        self,
        state: EngineState,
        model: LoadedModel | None,
        live: Collection[LiveRequest],
        *,
        events: Collection[EngineEvent],
    ) -> EngineSnapshot:
        """The engine now, or a moment ago. `events` are those since the last one; none: something else has changed."""
        if model is None:
            self._last = EngineSnapshot(state=state)
            return self._last
        has_news = (
            len(live) != len(self._last.runs)
            or not events
            or not _NO_NEWS.issuperset(map(type, events))
        )
        began_s = self._clock()
        is_due = self._pace.is_due(began_s, num_requests=len(live), has_news=has_news)
        if is_due or self._last.state is not state:
            self._last = self._make(state, model, live, began_s)
            self._pace.note(began_s, self._clock())
        return self._last

    def _make(
        self, state: EngineState, model: LoadedModel, live: Collection[LiveRequest], now_s: float
    ) -> EngineSnapshot:
        scheduler, runner = model.scheduler, model.runner
        explainer = scheduler.explain() if live else None
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
            runs=self._list_runs(scheduler.num_running, live, explainer, now_s),
            holdings=explainer.holdings() if explainer is not None else (),
            saved_ids=model.disk.earlier_ids if model.disk is not None else (),
            tokens_per_s=self._rate.rate(now_s),
            steps=model.tally.counts(),
        )

    def _list_runs(
        self,
        num_running: int,
        live: Collection[LiveRequest],
        explainer: Explainer | None,
        now_s: float,
    ) -> tuple[Run, ...]:
        generations = [one.generation for one in live if one.generation is not None]
        self._forecaster.learn([one.seq for one in generations], now_s)
        if explainer is None:
            return ()
        tokens_s = self._rate.rate(now_s) / max(num_running, 1)

        def expected_wait(seq: Sequence) -> tuple[float, float] | None:
            outlook = explainer.outlook(seq)
            if outlook is None or not tokens_s:  # in no line, or no speed was measured
                return None
            return self._forecaster.tell(seq, entry_of(outlook, tokens_s=tokens_s), now_s)

        return tuple(_run(one, explainer, expected_wait, now_s) for one in live)


def _run(
    live: LiveRequest,
    explainer: Explainer,
    expected_wait: Callable[[Sequence], tuple[float, float] | None],
    now_s: float,
) -> Run:
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
        computed_tokens=seq.num_computed,
        kept_pages=explainer.num_kept(seq),
        wait=explainer.wait_reason(seq),
        expected_wait_s=expected_wait(seq),
        is_called=bool(seq.call) or keeps_room((seq,), now_s),
    )


def _pool_usage(model: LoadedModel) -> PoolUsage:
    usage = model.scheduler.pool.usage()
    return replace(usage, page_bytes=model.runner.page_bytes)
