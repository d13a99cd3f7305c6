"""POST /v1/completions, streamed and whole: text or token ids in, text out, no chat template. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from studio.server.context import ServerContext, delivery_of
from studio.server.protocol import CompletionRequest
from studio.server.replies import CompletionReply, new_reply_head
from studio.server.translate import completion_requests


def completions_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @router.post("/v1/completions")
    async def completions(http: HttpRequest) -> Response:
        wire = await context.read(http, CompletionRequest)
        model = await context.model_for(http, wire.model)
        head = new_reply_head("cmpl", model.name)
        requests = completion_requests(wire, head.reply_id)
        shape = CompletionReply(
            head,
            has_logprobs=wire.logprobs is not None,
            includes_usage=wire.wants_usage_chunk,
        )
        return await context.answer(http, requests, shape, delivery_of(wire))

    return router
