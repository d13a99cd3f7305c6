"""POST /tokenize, /detokenize and /apply-template, as llama-server has them: what the loaded model makes of text.

Server thread; the work is done by the engine's intake worker.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BeforeValidator, Field, WithJsonSchema
from starlette.requests import Request as HttpRequest

from engine.api import Chat, Detokenize, Render, TextAnswer, TextQuestion, Tokenize
from studio.server.context import ServerContext
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.prompt_fields import ID_LIST, MIXED_PROMPT, read_ids, read_mixed
from studio.server.protocol import ChatCompletionRequest
from studio.server.translate import chat_requests
from studio.server.wire import WireModel


class TokenizeRequest(WireModel):
    """POST /tokenize."""

    model: str | None = None
    content: Annotated[
        tuple[str | int, ...], BeforeValidator(read_mixed), WithJsonSchema(MIXED_PROMPT)
    ]
    add_special: bool | None = None
    """With what a prompt begins and ends with, BOS mostly."""
    parse_special: bool | None = None
    """Control tokens spelled out are tokens; true unless said otherwise."""
    with_pieces: bool | None = None


class DetokenizeRequest(WireModel):
    """POST /detokenize."""

    model: str | None = None
    tokens: Annotated[tuple[int, ...], BeforeValidator(read_ids), WithJsonSchema(ID_LIST)] = Field(
        description="Token ids of the loaded model."
    )


def texts_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    async def ask(http: HttpRequest, model: str | None, question: TextQuestion) -> TextAnswer:
        await context.model_for(http, model)
        return await context.live.run(context.client.read_text(question), receive=http.receive)

    @router.post("/tokenize")
    async def tokenize(http: HttpRequest) -> JsonAnswer:
        wire = await context.read(http, TokenizeRequest)
        question = Tokenize(
            parts=wire.content,
            adds_special=bool(wire.add_special),
            reads_control=wire.parse_special is not False,
        )
        answer = await ask(http, wire.model, question)
        if not wire.with_pieces:
            return JsonAnswer({"tokens": list(answer.token_ids)})
        pairs = zip(answer.token_ids, answer.pieces, strict=True)
        return JsonAnswer({"tokens": [_with_piece(token_id, raw) for token_id, raw in pairs]})

    @router.post("/detokenize")
    async def detokenize(http: HttpRequest) -> JsonAnswer:
        wire = await context.read(http, DetokenizeRequest)
        answer = await ask(http, wire.model, Detokenize(ids=wire.tokens, shows_control=True))
        return JsonAnswer({"content": answer.text})

    @router.post("/apply-template")
    async def apply_template(http: HttpRequest) -> JsonAnswer:
        wire = await context.read(http, ChatCompletionRequest)
        chat = chat_requests(wire, "template")[0].prompt
        assert isinstance(chat, Chat)
        answer = await ask(http, wire.model, Render(chat=chat))
        return JsonAnswer({"prompt": answer.text})

    return router


def _with_piece(token_id: int, raw: bytes) -> Json:
    """The piece as text, or as its bytes where these are no whole characters."""
    try:
        return {"id": token_id, "piece": raw.decode()}
    except UnicodeDecodeError:
        return {"id": token_id, "piece": list(raw)}
