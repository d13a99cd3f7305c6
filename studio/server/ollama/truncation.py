"""Cuts texts for embeddings at the end of the window, which clients of Ollama count on. Server thread."""

from __future__ import annotations

from starlette.requests import Request as HttpRequest

from engine.api import Tokenize
from studio.server.context import ServerContext
from studio.server.prompt_fields import Prompt


async def truncated(
    context: ServerContext, http: HttpRequest, texts: tuple[str, ...]
) -> tuple[Prompt, ...]:
    """The texts; of those with more tokens than a request can hold the first ones, and the last one, which ends it."""
    window = context.client.snapshot().window_tokens
    return tuple([await _truncated(context, http, text, window) for text in texts])


async def _truncated(context: ServerContext, http: HttpRequest, text: str, window: int) -> Prompt:
    if (
        len(text.encode()) + 2 <= window
    ):  # no token is less than a byte; and what the model's rule adds
        return text
    question = Tokenize(parts=(text,), adds_special=True, reads_control=False)
    answer = await context.live.run(context.client.read_text(question), receive=http.receive)
    ids = answer.token_ids
    return text if len(ids) <= window else (*ids[: window - 1], ids[-1])
