"""POST /v1/chat/completions, streamed and whole. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from studio.server.context import ServerContext, delivery_of
from studio.server.protocol import ChatCompletionRequest
from studio.server.replies import ChatReply, new_reply_head
from studio.server.translate import chat_requests


def chat_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/chat/completions")
    async def chat_completions(http: HttpRequest) -> Response:
        wire = await context.read(http, ChatCompletionRequest)
        model = await context.model_for(http, wire.model)
        head = new_reply_head("chatcmpl", model.name)
        requests = chat_requests(wire, head.reply_id)
        shape = ChatReply(
            head,
            has_logprobs=bool(wire.logprobs),
            includes_usage=wire.wants_usage_chunk,
        )
        return await context.answer(http, requests, shape, delivery_of(wire))

    return router
