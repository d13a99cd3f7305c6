"""POST /v1/embeddings: texts as vectors of length 1, of models that are made for that. Server thread."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BeforeValidator, Field, WithJsonSchema
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse

from engine.api import ModelInfo
from studio.server import prompt_fields
from studio.server.context import ServerContext
from studio.server.embeddings import (
    MAX_TEXTS,
    about_input,
    as_base64,
    check_embeds,
    embed_requests,
    shortened,
)
from studio.server.framing import Json
from studio.server.prompt_fields import prompts_schema, read_prompts
from studio.server.replies import new_reply_head
from studio.server.wire import WireModel


class EmbeddingRequest(WireModel):
    """POST /v1/embeddings. `texts` is the wire's `input`, always a tuple."""

    texts: Annotated[
        tuple[prompt_fields.Prompt, ...],
        BeforeValidator(partial(read_prompts, most=MAX_TEXTS)),
        WithJsonSchema(prompts_schema(MAX_TEXTS)),
    ] = Field(validation_alias="input")
    model: str | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    """Keep the first so many numbers, scaled to length 1 again."""
    max_wait: Annotated[float, Field(ge=0, le=1e9)] | None = None


def embeddings_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/embeddings")
    async def embeddings(http: HttpRequest) -> JSONResponse:
        wire = await context.read(http, EmbeddingRequest)
        model = await context.model_for(http, wire.model)
        check_embeds(model, wire.dimensions)
        reply_id = new_reply_head("embd", model.name).reply_id
        requests = embed_requests(wire.texts, reply_id, max_wait_s=wire.max_wait)
        with about_input():
            choices, end = await context.gather(http, requests)
        vectors = [shortened(choice.embedding, wire.dimensions) for choice in choices]
        usage = {"prompt_tokens": end.prompt_tokens, "total_tokens": end.prompt_tokens}
        return JSONResponse({**_reply(wire, model, vectors), "usage": usage, **end.park_fields})

    return router


def _reply(wire: EmbeddingRequest, model: ModelInfo, vectors: list[tuple[float, ...]]) -> Json:
    is_coded = wire.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": as_base64(vector) if is_coded else list(vector),
        }
        for index, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": data, "model": model.name}
