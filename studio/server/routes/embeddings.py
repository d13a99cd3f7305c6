"""POST /v1/embeddings: texts as vectors of length 1, of models that are made for that. Server thread."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BeforeValidator, Field, WithJsonSchema
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from studio.server import prompt_fields
from studio.server.context import ServerContext
from studio.server.embeddings import (
    MAX_TEXTS,
    about_input,
    check_embeds,
    embed_requests,
    encoded,
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
    async def embeddings(http: HttpRequest) -> Response:
        wire = await context.read(http, EmbeddingRequest)
        model = await context.model_for(http, wire.model)
        check_embeds(model, wire.dimensions)
        reply_id = new_reply_head("embd", model.name).reply_id
        requests = embed_requests(wire.texts, reply_id, max_wait_s=wire.max_wait)
        with about_input():
            choices, end = await context.gather(http, requests)
        is_coded = wire.encoding_format == "base64"
        vectors = (choice.embedding for choice in choices)
        coded = await encoded(vectors, wire.dimensions, as_base64=is_coded)
        usage = {"prompt_tokens": end.prompt_tokens, "total_tokens": end.prompt_tokens}
        rest = {"model": model.name, "usage": usage, **end.park_fields}
        return Response(_body(coded, rest), media_type="application/json")

    return router


def _body(coded: list[bytes], rest: Json) -> bytes:
    """The answer around vectors that are JSON already."""
    entries = (
        b'{"object":"embedding","index":%d,"embedding":%b}' % (index, vector)
        for index, vector in enumerate(coded)
    )
    return b'{"object":"list","data":[%b],%b' % (b",".join(entries), json.dumps(rest).encode()[1:])
