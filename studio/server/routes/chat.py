"""POST /v1/chat/completions, streamed and whole. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from studio.server.context import ServerContext
from studio.server.generation import Generation
from studio.server.park_state import can_park
from studio.server.protocol import ChatCompletionRequest
from studio.server.replies import ChatReply, new_reply_head
from studio.server.translate import chat_requests, served_model


def chat_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/chat/completions")
    async def chat_completions(http: HttpRequest) -> Response:
        wire = await context.read(http, ChatCompletionRequest)
        snapshot = context.client.snapshot()
        model = served_model(snapshot, wire.model)
        head = new_reply_head("chatcmpl", model.name)
        generation = Generation(
            requests=chat_requests(wire, head.reply_id),
            choices_per_prompt=wire.n or 1,
            shape=ChatReply(head, has_logprobs=bool(wire.logprobs)),
            include_usage=wire.wants_usage_chunk,
            tells_parks=can_park(snapshot),
        )
        return await context.answer(http, generation, wire)

    return router
