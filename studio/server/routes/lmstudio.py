"""GET /api/v0/models and /api/v0/models/{name}: LM Studio's own list, where its clients see what is loaded.

Server thread.
"""

from __future__ import annotations

from fastapi import APIRouter

from engine.api import ModelInfo
from studio.server.context import ServerContext
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.model_lists import ListedModel, all_models, model_called


def lmstudio_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.get("/api/v0/models")
    async def list_models() -> JsonAnswer:
        models = await all_models(context, with_facts=True)
        return JsonAnswer({"object": "list", "data": [_entry(each) for each in models]})

    @router.get("/api/v0/models/{name:path}")
    async def show_model(name: str) -> JsonAnswer:
        return JsonAnswer(_entry(await model_called(context, name, with_facts=True)))

    return router


def _entry(model: ListedModel) -> Json:
    entry: Json = {
        "id": model.name,
        "object": "model",
        "type": "embeddings" if model.info is not None and model.info.embedding_size else "llm",
        "publisher": "",
        "compatibility_type": "gguf" if model.offer.path.suffix == ".gguf" else "safetensors",
        "state": "loaded" if model.is_loaded else "not-loaded",
    }
    if model.info is not None:
        entry |= _facts(model.info)
    if model.is_loaded:
        entry["loaded_context_length"] = model.window_tokens
    return entry


def _facts(info: ModelInfo) -> Json:
    return {
        "arch": info.architecture,
        "quantization": info.quantization,
        "max_context_length": info.context_tokens,
        "capabilities": [] if info.embedding_size else ["tool_use"],
    }
