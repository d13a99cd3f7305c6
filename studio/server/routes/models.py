"""GET /v1/models and /v1/models/{name}: the one model that is loaded. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse

from engine.api import EngineSnapshot, EngineState
from studio.server.context import ServerContext
from studio.server.replies import Json
from studio.server.translate import served_model


def models_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/models")
    async def list_models() -> JSONResponse:
        snapshot = context.client.snapshot()
        is_ready = snapshot.state is EngineState.READY
        return JSONResponse(
            {"object": "list", "data": [_entry(snapshot, None)] if is_ready else []}
        )

    @router.get("/v1/models/{name:path}")
    async def show_model(name: str) -> JSONResponse:
        return JSONResponse(_entry(context.client.snapshot(), name))

    return router


def _entry(snapshot: EngineSnapshot, name: str | None) -> Json:
    model = served_model(snapshot, name)
    return {
        "id": model.name,
        "object": "model",
        "created": model.created_s,
        "owned_by": "layby",
        "max_model_len": snapshot.window_tokens,
    }
