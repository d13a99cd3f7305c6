"""How one route is described: what it takes, what it answers, how it fails. Pure; any thread."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from studio.server.openapi.json_schema import Schema
from studio.server.wire import WireModel


class Tag(Enum):
    """Under which heading a route stands; the values are for people."""

    OPENAI = "OpenAI"
    ANTHROPIC = "Anthropic"
    OLLAMA = "Ollama"
    LM_STUDIO = "LM Studio"
    LLAMA_SERVER = "llama-server"
    LAYBY = "Layby"


class ErrorShape(Enum):
    """The component that is the body of every error."""

    OPENAI = "Error"
    ANTHROPIC = "AnthropicError"
    OLLAMA = "OllamaError"


class Media(Enum):
    """What a body is."""

    JSON = "application/json"
    EVENTS = "text/event-stream"
    LINES = "application/x-ndjson"
    TEXT = "text/plain"
    HTML = "text/html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query parameter, never required."""

    name: str
    schema: Schema
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path."""

    summary: str
    words: str = ""
    """More, in Markdown's plainest: paragraphs and `code`."""
    tag: Tag
    body: type[WireModel] | None = None
    reply: Schema
    media: Media = Media.JSON
    success: int | None = 200
    """None: it never succeeds."""
    stream: Media | None = None
    """What a streamed answer is; None: it is never streamed."""
    stream_words: str = ""
    errors: ErrorShape = ErrorShape.OPENAI
    failures: tuple[int, ...] = ()
    """Statuses of errors, beside those that every path has."""
    not_ready: Schema | None = None
    """What a 503 has that is no error."""
    query: tuple[Query, ...] = ()
    example: Schema | None = None
    """A body to try it with."""
    is_open: bool = False
    """Whether it needs no key."""
