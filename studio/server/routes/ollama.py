"""Ollama's API, for the clients that speak only that: /api/chat, /api/generate, /api/embed and what is about models.

Server thread. The model that is loaded serves, and those of the library on demand; nothing here changes the library.
"""

from __future__ import annotations

import json
import time

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response

from engine.api import ModelInfo, ShowTemplate
from engine.errors import CorruptModel
from studio.server.context import Delivery, ServerContext
from studio.server.embeddings import check_embeds, embed_requests, encoded
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.model_lists import all_models, model_called
from studio.server.ollama.errors import REFUSED, refusal
from studio.server.ollama.fields import (
    ChatRequest,
    EmbeddingsRequest,
    EmbedRequest,
    GenerateRequest,
    ReplyFields,
    ShowRequest,
)
from studio.server.ollama.models import listed, running, shown
from studio.server.ollama.reply import OllamaReply, Telling
from studio.server.ollama.translate import chat_request, generate_request, plain_name
from studio.server.ollama.truncation import truncated
from studio.server.replies import new_reply_head
from studio.server.reply_shape import ReplyEnd

API_VERSION = "0.12.6"
"""The version of Ollama whose API this is; clients ask for a least one."""


def ollama_router(context: ServerContext) -> APIRouter:
    router = APIRouter()
    _add_models(router, context)
    _add_replies(router, context)
    _add_embeddings(router, context)
    _add_refusals(router)
    return router


def _add_models(router: APIRouter, context: ServerContext) -> None:
    @router.get("/")
    async def root() -> PlainTextResponse:
        return PlainTextResponse("Layby is running. Its API is described at /docs.\n")

    @router.get("/api/version")
    async def version() -> JsonAnswer:
        return JsonAnswer({"version": API_VERSION})

    @router.get("/api/tags")
    async def tags() -> JsonAnswer:
        models = await all_models(context, with_facts=True)
        return JsonAnswer({"models": [listed(each) for each in models]})

    @router.get("/api/ps")
    async def ps() -> JsonAnswer:
        models = await all_models(context)
        left_s = context.demand.left_s() if context.demand is not None else None
        expires_s = None if left_s is None else time.time() + left_s
        loaded = [running(each, expires_s=expires_s) for each in models if each.is_loaded]
        return JsonAnswer({"models": loaded})

    @router.post("/api/show")
    async def show(http: HttpRequest) -> JsonAnswer:
        wire = await context.read(http, ShowRequest)
        model = await model_called(context, plain_name(wire.model or wire.name), with_facts=True)
        if model.info is None:
            raise CorruptModel(f"the files of {model.name!r} are not sound; Layby's log says why")
        if not model.is_loaded:
            return JsonAnswer(shown(model.info))
        question = context.client.read_text(ShowTemplate())
        answer = await context.live.run(question, receive=http.receive)
        return JsonAnswer(shown(model.info, template=answer.text))


def _add_replies(router: APIRouter, context: ServerContext) -> None:
    async def prepare(http: HttpRequest, wire: ReplyFields, telling: Telling) -> JsonAnswer:
        """With nothing to answer a model is loaded, or let go where it is not to stay."""
        name = plain_name(wire.model)
        if wire.keep_alive == 0:
            meant = await model_called(context, name)
            if not meant.is_loaded or await context.keep_model(0):
                return JsonAnswer(OllamaReply(meant.name, telling).unloaded())
        model = await context.model_for(http, name)
        await context.keep_model(wire.keep_alive)
        return JsonAnswer(OllamaReply(model.name, telling).loaded())

    @router.post("/api/chat")
    async def chat(http: HttpRequest) -> Response:
        wire = await context.read(http, ChatRequest)
        if not wire.messages:
            return await prepare(http, wire, Telling.CHAT)
        model = await context.model_for(http, plain_name(wire.model))
        shape = OllamaReply(model.name, Telling.CHAT)
        request = chat_request(wire, _reply_id(model))
        await context.keep_model(wire.keep_alive, request_id=request.request_id)
        return await context.answer(
            http, (request,), shape, Delivery(streams=wire.streams, priority=wire.priority)
        )

    @router.post("/api/generate")
    async def generate(http: HttpRequest) -> Response:
        wire = await context.read(http, GenerateRequest)
        if not wire.prompt and not wire.suffix:
            return await prepare(http, wire, Telling.GENERATE)
        model = await context.model_for(http, plain_name(wire.model))
        shape = OllamaReply(model.name, Telling.GENERATE)
        request = generate_request(wire, _reply_id(model))
        await context.keep_model(wire.keep_alive, request_id=request.request_id)
        return await context.answer(
            http, (request,), shape, Delivery(streams=wire.streams, priority=wire.priority)
        )


def _add_embeddings(router: APIRouter, context: ServerContext) -> None:
    @router.post("/api/embed")
    async def embed(http: HttpRequest) -> Response:
        wire = await context.read(http, EmbedRequest)
        model = await context.model_for(http, plain_name(wire.model))
        size = wire.dimensions or None
        check_embeds(model, size)
        texts = (wire.input,) if isinstance(wire.input, str) else tuple(wire.input)
        if not texts:
            return JsonAnswer({"model": model.name, "embeddings": []})
        prompts = await truncated(context, http, texts) if wire.truncate is not False else texts
        requests = embed_requests(prompts, _reply_id(model), max_wait_s=wire.max_wait)
        choices, end = await context.gather(http, requests)
        await context.keep_model(wire.keep_alive)
        coded = await encoded((each.embedding for each in choices), size)
        rest = json.dumps({"model": model.name, **_figures(end)}).encode()[1:]
        body = b'{"embeddings":[%b],%b' % (b",".join(coded), rest)
        return Response(body, media_type="application/json")

    @router.post("/api/embeddings")
    async def embeddings(http: HttpRequest) -> JsonAnswer:
        wire = await context.read(http, EmbeddingsRequest)
        model = await context.model_for(http, plain_name(wire.model))
        check_embeds(model, None)
        if not wire.prompt:
            return JsonAnswer({"embedding": []})
        prompts = await truncated(context, http, (wire.prompt,))
        requests = embed_requests(prompts, _reply_id(model), max_wait_s=wire.max_wait)
        choices, _ = await context.gather(http, requests)
        await context.keep_model(wire.keep_alive)
        return JsonAnswer({"embedding": list(choices[0].embedding)})


def _add_refusals(router: APIRouter) -> None:
    async def refuse(http: HttpRequest) -> Response:
        raise refusal(http.url.path)

    for path in REFUSED:
        method = "DELETE" if path == "/api/delete" else "POST"
        router.add_api_route(path, refuse, methods=[method])


def _reply_id(model: ModelInfo) -> str:
    return new_reply_head("ollama", model.name).reply_id


def _figures(end: ReplyEnd) -> Json:
    total_s = max(
        (usage.queued_s + usage.prefill_s + usage.parked_s for usage in end.usages), default=0
    )
    return {
        "total_duration": int(total_s * 1e9),
        "load_duration": 0,
        "prompt_eval_count": end.prompt_tokens,
    }
