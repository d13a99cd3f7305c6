"""POST /completion and /infill, as llama-server has them: text with its own fields and events. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from engine.api import Detokenize, ModelInfo, Prompt, Text, TokenIds, Tokenize
from studio.server.context import Delivery, ServerContext
from studio.server.llamacpp.fields import CompletionFields, InfillRequest, LlamaCompletionRequest
from studio.server.llamacpp.reply import LlamaReply, LlamaTelling
from studio.server.llamacpp.translate import (
    completion_request,
    generation_settings,
    infill_prompt,
    text_prompt,
)
from studio.server.replies import new_reply_head


def llamacpp_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    async def text_of(http: HttpRequest, prompt: Prompt) -> str | None:
        """The prompt as the reply repeats it; that of a gap only the model's own tokens spell."""
        if not isinstance(prompt, TokenIds):
            return prompt.text if isinstance(prompt, Text) else None
        question = context.client.read_text(Detokenize(ids=prompt.ids, shows_control=True))
        return (await context.live.run(question, receive=http.receive)).text

    async def reply(
        http: HttpRequest, wire: CompletionFields, model: ModelInfo, prompt: Prompt
    ) -> Response:
        head = new_reply_head("cmpl", model.name)
        request = completion_request(wire, head.reply_id, prompt)
        telling = LlamaTelling(
            settings=generation_settings(wire, request),
            prompt=await text_of(http, prompt),
            fields=tuple(wire.response_fields or ()),
            has_probs=bool(wire.n_probs),
            returns_tokens=bool(wire.return_tokens),
        )
        shape = LlamaReply(model.name, telling)
        delivery = Delivery(
            streams=bool(wire.stream),
            ping_interval_s=wire.sse_ping_interval,
            priority=wire.priority,
        )
        return await context.answer(http, (request,), shape, delivery)

    @router.post("/completion")
    async def completion(http: HttpRequest) -> Response:
        wire = await context.read(http, LlamaCompletionRequest)
        model = await context.model_for(http, wire.model)
        prompt = text_prompt(wire)
        if prompt is None:
            question = context.client.read_text(Tokenize(parts=wire.prompt))
            answer = await context.live.run(question, receive=http.receive)
            prompt = TokenIds(ids=answer.token_ids)
        return await reply(http, wire, model, prompt)

    @router.post("/infill")
    async def infill(http: HttpRequest) -> Response:
        wire = await context.read(http, InfillRequest)
        model = await context.model_for(http, wire.model)
        return await reply(http, wire, model, infill_prompt(wire))

    return router
