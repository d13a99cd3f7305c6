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
class FoundPlace:
    """Where to go in a chat that was found, and what to mark there."""

    message_id: int
    query: str
    """As it was typed."""
    words: tuple[str, ...]
    """As they stand in the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextHit:
    """A message that has all the words."""

    chat_id: int
    message_id: int
    snippet: Snippet
