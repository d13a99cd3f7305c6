"""GET /v1/models and /v1/models/{name}: the model that is loaded, and those that a request may name. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse

from engine.api import EngineSnapshot, EngineState
from engine.errors import ModelNotFound, ModelUnavailable
from studio.server.context import ServerContext
from studio.server.framing import Json
from studio.server.translate import served_model
from studio.services.model_demand import Offer, unknown_model


def models_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    async def offers() -> tuple[Offer, ...]:
        return await context.demand.offers() if context.demand is not None else ()

    @router.get("/v1/models")
    async def list_models() -> JSONResponse:
        snapshot = context.client.snapshot()
        loaded = [_loaded(snapshot, None)] if snapshot.state is EngineState.READY else []
        path = snapshot.model.path if loaded and snapshot.model is not None else None
        others = [_offered(offer) for offer in await offers() if offer.path != path]
        return JSONResponse({"object": "list", "data": loaded + others})

    @router.get("/v1/models/{name:path}")
    async def show_model(name: str) -> JSONResponse:
        try:
            return JSONResponse(_loaded(context.client.snapshot(), name))
        except (ModelNotFound, ModelUnavailable):
            offered = await offers()
            found = [offer for offer in offered if offer.is_meant_by(name)]
            if offered and not found:
                raise unknown_model(name, offered) from None
            if not found:
                raise
            return JSONResponse(_offered(found[0]))

    return router


def _loaded(snapshot: EngineSnapshot, name: str | None) -> Json:
    model = served_model(snapshot, name)
    return {
        "id": model.name,
        "object": "model",
        "created": model.created_s,
        "owned_by": "layby",
        "max_model_len": snapshot.window_tokens,
    }


def _offered(offer: Offer) -> Json:
    return {
        "id": offer.name,
        "object": "model",
        "created": offer.created_s,
        "owned_by": "layby",
        "loaded": False,
    }
