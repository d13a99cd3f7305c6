"""POST /v1/completions, streamed and whole: text or token ids in, text out, no chat template. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from studio.server.context import ServerContext
from studio.server.generation import Generation
from studio.server.park_state import can_park
from studio.server.protocol import CompletionRequest
from studio.server.replies import CompletionReply, new_reply_head
from studio.server.translate import completion_requests, served_model


def completions_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/completions")
    async def completions(http: HttpRequest) -> Response:
        wire = await context.read(http, CompletionRequest)
        snapshot = context.client.snapshot()
        model = served_model(snapshot, wire.model)
        head = new_reply_head("cmpl", model.name)
        generation = Generation(
            requests=completion_requests(wire, head.reply_id),
            choices_per_prompt=wire.n or 1,
            shape=CompletionReply(head, has_logprobs=wire.logprobs is not None),
            include_usage=wire.wants_usage_chunk,
            tells_parks=can_park(snapshot),
        )
        return await context.answer(http, generation, wire)

    return router
