"""What to tell of a reply for which there was no room: its tools, where it would fit without them.

GUI thread, asyncio, no Qt.
"""

from __future__ import annotations

from dataclasses import replace

from engine.api import Chat, Prompt
from engine.client import EngineClient
from engine.errors import ContextLengthExceeded, EngineError
from studio.models.errors import ToolsTooLong


async def cause_of(
    error: ContextLengthExceeded, prompt: Prompt, client: EngineClient, *, chat_id: int
) -> ContextLengthExceeded | ToolsTooLong:
    """The error itself, or one about the tools of that prompt."""
    if not isinstance(prompt, Chat) or not prompt.tools:
        return error
    try:
        rest = await client.count_tokens(replace(prompt, tools=()))
    except EngineError:
        return error
    if rest is None or rest >= error.limit_tokens:
        return error
    return ToolsTooLong(
        f"they take {error.needed_tokens - rest:,} of {error.needed_tokens:,} tokens, and a request can hold "
        f"{error.limit_tokens:,}; switch some of them off, then ask again",
        chat_id=chat_id,
    )
