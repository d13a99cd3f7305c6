"""POST /completion, /infill and /embedding, as llama-server has them: its own fields and shapes. Server thread."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from engine.api import Detokenize, ModelInfo, Prompt, Text, TokenIds, Tokenize
from studio.server.context import Delivery, ServerContext
from studio.server.embeddings import about_input, check_embeds, embed_requests, encoded
from studio.server.llamacpp.embedding import LlamaEmbeddingRequest, scaled
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

    _add_embedding(router, context)
    return router


def _add_embedding(router: APIRouter, context: ServerContext) -> None:
    @router.post("/embedding")
    async def embedding(http: HttpRequest) -> Response:
        wire = await context.read(http, LlamaEmbeddingRequest)
        model = await context.model_for(http, wire.model)
        check_embeds(model, None)
        reply_id = new_reply_head("embd", model.name).reply_id
        requests = embed_requests(wire.texts, reply_id, max_wait_s=wire.max_wait)
        with about_input():
            choices, _ = await context.gather(http, requests)
        vectors = (scaled(choice.embedding, wire.embd_normalize) for choice in choices)
        return Response(_vectors_body(await encoded(vectors)), media_type="application/json")


def _vectors_body(coded: list[bytes]) -> bytes:
    """Each vector is in a list of its own: that of a model without pooling would have one for each token."""
    entries = (
        b'{"index":%d,"embedding":[%b]}' % (index, vector) for index, vector in enumerate(coded)
    )
    return b"[%b]" % b",".join(entries)
