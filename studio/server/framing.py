"""How the events of a stream are put on the wire: as server-sent events, with names or without, or as lines of JSON.

Pure; any thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from studio.server.json_text import json_bytes

Json = dict[str, Any]

_EVENT_STREAM = b"text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """What stands around the JSON of an event. JSON is one line; see `json_text`."""

    content_type: bytes
    encode: Callable[[Json], bytes]
    trailer: bytes = b""
    """What follows the last event of a stream that ended well."""
    has_comments: bool = True
    """Whether readers skip comments; signs of life and of parking are empty deltas where they do not."""
    pings: bool = False
    """Whether events are signs of life too, now and then: clients of this protocol count on them."""


def _event(data: Json) -> bytes:
    return b"data: " + json_bytes(data) + b"\n\n"


def _named_event(data: Json) -> bytes:
    """Named by the type that the event has in itself."""
    return b"event: %b\ndata: %b\n\n" % (data["type"].encode(), json_bytes(data))


def _line(data: Json) -> bytes:
    return json_bytes(data) + b"\n"


EVENTS = Framing(content_type=_EVENT_STREAM, encode=_event, trailer=b"data: [DONE]\n\n")
"""OpenAI's completions, of chats and of text."""

NAMED_EVENTS = Framing(content_type=_EVENT_STREAM, encode=_named_event, pings=True)
"""OpenAI's responses and Anthropic's messages."""

LINES = Framing(content_type=b"application/x-ndjson", encode=_line, has_comments=False)
"""Ollama."""
