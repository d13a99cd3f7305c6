"""GET /v1/runs and POST /v1/runs/{id}/...: every request in flight, of the window and of programs, and its steering.

Server thread. A command is carried out between two steps, so answers show the run as it was before. The id of a
response stands for all its choices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest

from engine.runs import (
    Origin,
    ParkNow,
    Pin,
    ResumeNext,
    Run,
    SetPriority,
    SteeringCommand,
)
from studio.models.run_words import reason_words, state_words
from studio.server.auth import caller_of
from studio.server.context import ServerContext
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.park_state import can_park
from studio.server.priority_field import PriorityName
from studio.server.steering_rights import check_lane, check_own, check_pins, may_go_first
from studio.server.wire import WireModel


class PriorityChange(WireModel):
    """The body of POST /v1/runs/{id}/priority."""

    priority: PriorityName


def runs_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    def steer(
        http: HttpRequest, name: str, command: Callable[[str], SteeringCommand]
    ) -> JsonAnswer:
        found = _find(context.client.snapshot().runs, name)
        check_own(caller_of(http.scope), found, context.gate)
        for run in reversed(found):  # called last is first in line: they return in their order
            context.client.control(command(run.request_id))
        return JsonAnswer(_record_of(found, name), 202)

    @router.get("/v1/runs")
    async def list_runs() -> JsonAnswer:
        runs = context.client.snapshot().runs
        return JsonAnswer({"object": "list", "data": [run_record(run) for run in runs]})

    @router.get("/v1/runs/{run_id}")
    async def show_run(run_id: str) -> JsonAnswer:
        return JsonAnswer(_record_of(_find(context.client.snapshot().runs, run_id), run_id))

    @router.post("/v1/runs/{run_id}/park")
    async def park(http: HttpRequest, run_id: str) -> JsonAnswer:
        if not can_park(context.client.snapshot()):
            raise _parking_off()
        return steer(http, run_id, lambda name: ParkNow(request_id=name))

    @router.post("/v1/runs/{run_id}/resume")
    async def resume(http: HttpRequest, run_id: str) -> JsonAnswer:
        goes_first = may_go_first(caller_of(http.scope))
        return steer(http, run_id, lambda name: ResumeNext(request_id=name, goes_first=goes_first))

    @router.post("/v1/runs/{run_id}/pin")
    async def pin(http: HttpRequest, run_id: str) -> JsonAnswer:
        check_pins(caller_of(http.scope))
        return steer(http, run_id, lambda name: Pin(request_id=name))

    @router.post("/v1/runs/{run_id}/unpin")
    async def unpin(http: HttpRequest, run_id: str) -> JsonAnswer:
        return steer(http, run_id, lambda name: Pin(request_id=name, is_pinned=False))

    @router.post("/v1/runs/{run_id}/priority")
    async def set_priority(http: HttpRequest, run_id: str) -> JsonAnswer:
        wire = await context.read(http, PriorityChange)
        check_lane(caller_of(http.scope), wire.priority)
        return steer(
            http, run_id, lambda name: SetPriority(request_id=name, priority=wire.priority)
        )

    return router


def run_record(run: Run) -> Json:
    """One request in flight, as /v1/runs tells it: its place, and the first few ids of those before it."""
    wait, expected = run.wait, run.expected_wait_s
    return {
        "id": run.request_id,
        "object": "run",
        "origin": run.origin.value,
        "priority": run.priority.name.lower(),
        "state": run.state.value,
        "state_in_words": state_words(run.state),
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        "held_tokens": run.held_tokens,
        "pinned": run.is_pinned,
        "parks": run.num_parks,
        "recomputes": run.num_recomputes,
        "waited_s": round(run.waited_s, 3),
        "place": wait.place if wait is not None else None,
        "reason": wait.kind.value if wait is not None else None,
        "reason_in_words": reason_words(wait) if wait is not None else None,
        "ahead": list(wait.ahead_ids) if wait is not None else [],
        "expected_wait_s": expected and [round(seconds, 1) for seconds in expected],
    }


def _response_of(run: Run) -> str | None:
    """The id of the response that a program's run is a choice of."""
    response, _, number = run.request_id.rpartition("-")
    return response if run.origin is Origin.API and number.isdecimal() else None


def _parking_off() -> ApiError:
    return ApiError(
        "nobody is parked while the memory for parked requests is 0; give some with --preempt-ram or in the settings",
        ErrorKind(409, INVALID_REQUEST, "parking_off"),
    )


def _record_of(found: Sequence[Run], name: str) -> Json:
    """The run of that name; of a response the list of its choices, even where one is left."""
    if found[0].request_id == name:
        return run_record(found[0])
    return {"object": "list", "data": [run_record(run) for run in found]}


def _find(runs: tuple[Run, ...], name: str) -> Sequence[Run]:
    """The run of that name, or the choices in flight of the response whose id it is; at least one."""
    found = [run for run in runs if run.request_id == name]
    found = found or [run for run in runs if _response_of(run) == name]
    if found:
        return found
    raise ApiError(
        f"no request in flight is called {name[:200]!r}; GET /v1/runs lists those there are",
        ErrorKind(404, INVALID_REQUEST, "run_not_found"),
    )
