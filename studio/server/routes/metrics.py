"""GET /metrics: what the engine does, in Prometheus' text format. Server thread.

Every figure comes from one snapshot and is told under two names: `layby:` for ours, `llamacpp:` for dashboards that
already exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.responses import Response

from engine.api import EngineSnapshot
from engine.client import EngineClient
from engine.runs import StepCount
from studio.server.context import ServerContext
from studio.server.park_state import is_in_or_out, is_in_transfer, is_preempted

_PREFIXES = ("layby:", "llamacpp:")


def metrics_router(context: ServerContext) -> APIRouter:
    router = APIRouter()
    registry = CollectorRegistry()
    registry.register(_SnapshotCollector(context.client))

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router


class _SnapshotCollector(Collector):
    def __init__(self, client: EngineClient) -> None:
        self._client = client

    def describe(self) -> tuple[()]:
        """Names are fixed here and clash with nobody's: nothing to check by asking for figures."""
        return ()

    def collect(self) -> Iterator[Metric]:
        snapshot = self._client.snapshot()
        for prefix in _PREFIXES:
            for name, words, value in _counters(snapshot):
                yield CounterMetricFamily(prefix + name, words, value)
            for name, words, value in _gauges(snapshot):
                yield GaugeMetricFamily(prefix + name, words, value)
        yield from _steps(snapshot)


_Rows = tuple[tuple[str, str, float], ...]


def _counters(snapshot: EngineSnapshot) -> _Rows:
    """Names without their ending, `_total`. They start anew when a model is loaded."""
    parks = snapshot.parks
    return (
        ("n_preempt", "Parks; counted once the pages are with others.", parks.num_parks),
        ("n_resume", "Parked requests that came back.", parks.num_resumes),
        (
            "preempt_recompute",
            "Parks whose state was dropped, to be computed again.",
            parks.num_recomputes,
        ),
        (
            "preempt_rotation",
            "Parks for a request that had waited long enough.",
            parks.num_rotations,
        ),
        ("preempt_last_resort", "Steps that unexpectedly found no page.", parks.num_last_resorts),
    )


def _steps(snapshot: EngineSnapshot) -> Iterator[Metric]:
    """Steps by kind, under our name alone: nobody else counts the same."""
    for name, words, value_of in _STEP_COUNTERS:
        family = CounterMetricFamily("layby:" + name, words, labels=("replies", "prompts"))
        for one in snapshot.steps:
            family.add_metric((str(one.replies), "yes" if one.has_prompts else "no"), value_of(one))
        yield family


_STEP_COUNTERS: tuple[tuple[str, str, Callable[[StepCount], float]], ...] = (
    (
        "steps",
        "Steps, by the replies in them and whether prompts were read too.",
        lambda s: s.steps,
    ),
    ("step_seconds", "Seconds of these steps, parks and restores aside.", lambda s: s.seconds),
    ("step_prompt_tokens", "Tokens of prompts read in them.", lambda s: s.prompt_tokens),
    (
        "step_context_tokens",
        "For each token computed, those that its sequence held before.",
        lambda s: s.context_tokens,
    ),
)


def _gauges(snapshot: EngineSnapshot) -> _Rows:
    num_out = sum(is_preempted(run) or is_in_transfer(run) for run in snapshot.runs)
    num_in_or_out = sum(map(is_in_or_out, snapshot.runs))
    parks, pool = snapshot.parks, snapshot.pool
    return (
        ("requests_preempted", "Requests parked, or on the way out or back.", num_out),
        ("requests_processing", "Requests running or parked.", num_in_or_out),
        ("requests_deferred", "Requests in line that have not run yet.", snapshot.waiting),
        ("predicted_tokens_seconds", "Tokens per second, all replies.", snapshot.tokens_per_s),
        ("preempt_ram_bytes", "Bytes that parked requests hold.", parks.used_bytes),
        ("preempt_ram_budget_bytes", "Most they may hold; -1: no limit.", parks.budget_bytes),
        ("pool_pages", "Pages of the pool.", pool.total_pages),
        ("pool_pages_free", "Pages nobody uses.", pool.free_pages),
        (
            "pool_pages_reusable",
            "Pages with prefixes of ended requests, free for the taking.",
            pool.reusable_pages,
        ),
    )
