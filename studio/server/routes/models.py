"""GET /v1/models and /v1/models/{name}: the model that is loaded, and those that a request may name. Server thread.

OpenAI's clients and Anthropic's ask at the same paths; a header tells which.
"""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest

from studio.server.context import ServerContext
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.messages.errors import is_from_anthropics_client
from studio.server.messages.models import model_entry, model_page
from studio.server.model_lists import ListedModel, all_models, model_called


def models_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/v1/models")
    async def list_models(http: HttpRequest) -> JsonAnswer:
        models = await all_models(context)
        if is_from_anthropics_client(http.scope):
            return JsonAnswer(model_page(models, http.query_params))
        return JsonAnswer({"object": "list", "data": [_entry(each) for each in models]})

    @router.get("/v1/models/{name:path}")
    async def show_model(http: HttpRequest, name: str) -> JsonAnswer:
        model = await model_called(context, name)
        word = model_entry if is_from_anthropics_client(http.scope) else _entry
        return JsonAnswer(word(model))

    return router


def _entry(model: ListedModel) -> Json:
    """As OpenAI's clients list it."""
    rest: Json = {"max_model_len": model.window_tokens} if model.is_loaded else {"loaded": False}
    return {
        "id": model.name,
        "object": "model",
        "created": model.offer.created_s,
        "owned_by": "layby",
        **rest,
    }
