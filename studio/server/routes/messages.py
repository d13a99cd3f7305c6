"""POST /v1/messages, streamed and whole, and POST /v1/messages/count_tokens: Anthropic's API. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from studio.server.context import Delivery, ServerContext
from studio.server.json_text import JsonAnswer
from studio.server.layers import request_id_of
from studio.server.messages.fields import MessagesRequest, PromptFields
from studio.server.messages.reply import MessagesReply
from studio.server.messages.translate import chat_of, messages_request
from studio.server.replies import new_reply_head


def messages_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/messages")
    async def messages(http: HttpRequest) -> Response:
        wire = await context.read(http, MessagesRequest)
        model = await context.model_for(http, wire.model)
        head = new_reply_head("msg", model.name, joint="_")
        shape = MessagesReply(
            head, shows_thinking=wire.thinking.is_shown, request_id=request_id_of(http.scope)
        )
        requests = (messages_request(wire, head.reply_id),)
        delivery = Delivery(
            streams=bool(wire.stream),
            ping_interval_s=wire.sse_ping_interval,
            priority=wire.priority,
        )
        return await context.answer(http, requests, shape, delivery)

    @router.post("/v1/messages/count_tokens")
    async def count_tokens(http: HttpRequest) -> Response:
        wire = await context.read(http, PromptFields)
        await context.model_for(http, wire.model)
        count = await context.count_tokens(http, chat_of(wire))
        return JsonAnswer({"input_tokens": count})

    return router
