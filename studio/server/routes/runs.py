"""GET /v1/runs and POST /v1/runs/{id}/...: every request in flight, of the window and of programs, and its steering.

Server thread. A command is carried out between two steps, so answers show the run as it was before.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BeforeValidator
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse

from engine.runs import ParkNow, Pin, Priority, ResumeNext, Run, SetPriority, SteeringCommand
from studio.models.run_words import reason_words, state_words
from studio.server.context import ServerContext
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind
from studio.server.park_state import can_park
from studio.server.protocol import WireModel, wrong_value
from studio.server.replies import Json

_PRIORITIES = {priority.name.lower(): priority for priority in Priority}


def _read_priority(value: object) -> object:
    if not isinstance(value, str) or value.lower() not in _PRIORITIES:
        raise wrong_value(f"is {value!r:.40}, allowed are {', '.join(_PRIORITIES)}")
    return _PRIORITIES[value.lower()]


class PriorityChange(WireModel):
    """The body of POST /v1/runs/{id}/priority."""

    priority: Annotated[Priority, BeforeValidator(_read_priority)]


def runs_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    def steer(run_id: str, command: SteeringCommand) -> JSONResponse:
        run = _find(context.client.snapshot().runs, run_id)
        context.client.control(command)
        return JSONResponse(run_record(run), 202)

    @router.get("/v1/runs")
    async def list_runs() -> JSONResponse:
        runs = context.client.snapshot().runs
        return JSONResponse({"object": "list", "data": [run_record(run) for run in runs]})

    @router.get("/v1/runs/{run_id}")
    async def show_run(run_id: str) -> JSONResponse:
        return JSONResponse(run_record(_find(context.client.snapshot().runs, run_id)))

    @router.post("/v1/runs/{run_id}/park")
    async def park(run_id: str) -> JSONResponse:
        if not can_park(context.client.snapshot()):
            raise _parking_off()
        return steer(run_id, ParkNow(request_id=run_id))

    @router.post("/v1/runs/{run_id}/resume")
    async def resume(run_id: str) -> JSONResponse:
        return steer(run_id, ResumeNext(request_id=run_id))

    @router.post("/v1/runs/{run_id}/pin")
    async def pin(run_id: str) -> JSONResponse:
        return steer(run_id, Pin(request_id=run_id))

    @router.post("/v1/runs/{run_id}/unpin")
    async def unpin(run_id: str) -> JSONResponse:
        return steer(run_id, Pin(request_id=run_id, is_pinned=False))

    @router.post("/v1/runs/{run_id}/priority")
    async def set_priority(http: HttpRequest, run_id: str) -> JSONResponse:
        wire = await context.read(http, PriorityChange)
        return steer(run_id, SetPriority(request_id=run_id, priority=wire.priority))

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


def _parking_off() -> ApiError:
    return ApiError(
        "nobody is parked while the memory for parked requests is 0; give some with --preempt-ram or in the settings",
        ErrorKind(409, INVALID_REQUEST, "parking_off"),
    )


def _find(runs: tuple[Run, ...], run_id: str) -> Run:
    for run in runs:
        if run.request_id == run_id:
            return run
    raise ApiError(
        f"no request in flight is called {run_id[:200]!r}; GET /v1/runs lists those there are",
        ErrorKind(404, INVALID_REQUEST, "run_not_found"),
    )
