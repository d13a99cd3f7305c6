"""What a search has found. Plain state; no Qt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """A piece of text around what was looked for, on one line."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    """Half-open ranges of `text` that were looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextHit:
    """A message that has all the words."""

    chat_id: int
    message_id: int
    snippet: Snippet
