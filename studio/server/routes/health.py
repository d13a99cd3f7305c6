"""GET /health: whether a model is ready, for programs that wait for it. Needs no key. Server thread."""

from __future__ import annotations

from fastapi import APIRouter

from engine.api import EngineState
from studio.server.context import ServerContext
from studio.server.errors import LOADING_RETRY_S, retry_after
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer

_STATUS = {
    EngineState.READY: "ok",
    EngineState.LOADING: "loading model",
    EngineState.NO_MODEL: "no model",
    EngineState.FAILED: "model failed to load",
    EngineState.STOPPED: "stopped",
}

_LOADING: Json = {
    "error": {"code": 503, "message": "Loading model", "type": "unavailable_error"},
}
"""As programs that wait for llama-server know it."""


def health_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/health")
    async def health() -> JsonAnswer:
        state = context.client.snapshot().state
        headers = retry_after(LOADING_RETRY_S) if state is EngineState.LOADING else None
        status = 200 if state is EngineState.READY else 503
        body = {"status": _STATUS[state], **(_LOADING if state is EngineState.LOADING else {})}
        return JsonAnswer(body, status, headers)

    return router
