"""POST /v1/completions, streamed and whole: text or token ids in, text out, no chat template. Server thread."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from engine.api import Detokenize
from studio.server.completion_reply import CompletionReply, CompletionTelling
from studio.server.completion_requests import CompletionRequest, completion_requests
from studio.server.context import ServerContext, delivery_of
from studio.server.prompt_fields import Prompt
from studio.server.replies import new_reply_head


def completions_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    async def text_of(http: HttpRequest, prompt: Prompt) -> str:
        """The prompt as it is echoed."""
        if isinstance(prompt, str):
            return prompt
        question = context.client.read_text(Detokenize(ids=prompt))
        return (await context.live.run(question, receive=http.receive)).text

    @router.post("/v1/completions")
    async def completions(http: HttpRequest) -> Response:
        wire = await context.read(http, CompletionRequest)
        model = await context.model_for(http, wire.model)
        head = new_reply_head("cmpl", model.name)
        requests = completion_requests(wire, head.reply_id)
        prompts = [await text_of(http, prompt) for prompt in wire.prompts] if wire.echo else []
        telling = CompletionTelling(
            has_logprobs=wire.logprobs is not None,
            includes_usage=wire.wants_usage_chunk,
            echoes=tuple(text for text in prompts for _ in range(wire.tried_per_prompt)),
            scores_prompt=wire.scores_prompt,
            tried_per_prompt=wire.tried_per_prompt,
            told_per_prompt=wire.told_per_prompt,
        )
        delivery = replace(delivery_of(wire), choices_per_prompt=wire.tried_per_prompt)
        return await context.answer(http, requests, CompletionReply(head, telling), delivery)

    return router
