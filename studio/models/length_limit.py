"""Whose limit a reply reached: that of the pool, of the model, or the one that was set for replies.

Pure functions over the engine's messages, any thread; no Qt.
"""

from __future__ import annotations

from enum import Enum

from engine.api import EngineSnapshot, Usage


class LengthLimit(Enum):
    """The values are sentences: they are kept with the reply as its note."""

    POOL = "Ended at the limit of the pool"
    MODEL = "Ended at the limit of the model"
    REPLY = "Ended at the limit set for replies"


def window_limit(snapshot: EngineSnapshot) -> LengthLimit | None:
    """What limits the tokens of a request, prompt and reply together; None without a model."""
    if snapshot.model is None or not snapshot.window_tokens:
        return None
    is_pool = snapshot.window_tokens < snapshot.model.context_tokens
    return LengthLimit.POOL if is_pool else LengthLimit.MODEL


def reached_limit(
    usage: Usage, max_tokens: int | None, snapshot: EngineSnapshot
) -> LengthLimit | None:
    """Which limit a request reached that ended by its length; None if that is not known."""
    if max_tokens is not None and usage.completion_tokens >= max_tokens:
        return LengthLimit.REPLY
    if usage.prompt_tokens + usage.completion_tokens >= snapshot.window_tokens:
        return window_limit(snapshot)
    return None
