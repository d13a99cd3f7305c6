"""What clients may send to Ollama's routes: the wire types, checked strictly; a wrong value names its field.

Fields nobody here knows are ignored; those that would change the answer and cannot be honoured are refused by name.
The options of loading are accepted: how a model is loaded is the user's own setting. Any thread; no web framework.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from engine.api import ChatMessage, Grammar, Tool, ToolCall
from studio.server.ollama.keep_alive import KeepAlive
from studio.server.priority_field import AskedPriority
from studio.server.protocol import MAX_MESSAGES, MAX_STOPS, SamplingFields, read_stops
from studio.server.structured import object_grammar, schema_grammar
from studio.server.tool_fields import make_call, read_tools
from studio.server.wire import MaxWait, WireModel, only, wrong_value

MAX_TEXTS = 2048
_ROLES = ("system", "user", "assistant", "tool")
_EFFORTS = ("low", "medium", "high", "max")

ModelName = Annotated[str, Field(max_length=1024)] | None
"""`name:latest` is the model called `name`."""


_STOPS_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "maxItems": MAX_STOPS},
        {"type": "null"},
    ]
}


class Options(SamplingFields):
    """`options`: how to sample and how much. Those of loading, such as num_ctx and num_gpu, are ignored."""

    num_predict: Annotated[int, Field(ge=-2, le=1 << 31)] | None = None
    """Most tokens to write; -1 and -2: no limit."""
    stop: Annotated[
        list[str] | None,
        Field(fail_fast=True),
        BeforeValidator(read_stops),
        WithJsonSchema(_STOPS_SCHEMA),
    ] = None
    mirostat: Annotated[Any, only(0)] = None
    tfs_z: Annotated[Any, only(1)] = None


def _read_format(value: object) -> Grammar | None:
    """`"json"` or a JSON schema -> what the reply must match; null and "" ask for nothing."""
    if value is None or value == "":
        return None
    if value == "json":
        return object_grammar("format")
    if not isinstance(value, dict):
        raise wrong_value(f'is {value!r:.40}, allowed are "json" and a JSON schema')
    return schema_grammar(value, "format")


_FORMAT_SCHEMA: dict[str, Any] = {
    "anyOf": [{"enum": ["", "json"]}, {"type": "object"}, {"type": "null"}]
}


def _read_think(value: object) -> object:
    if isinstance(value, str) and value not in _EFFORTS:
        raise wrong_value(f"is {value[:40]!r}, allowed are true, false and {', '.join(_EFFORTS)}")
    return value


Think = Annotated[
    bool | str | None,
    BeforeValidator(_read_think),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"enum": [*_EFFORTS, None]}]}),
]


class ReplyFields(WireModel):
    """What /api/chat and /api/generate have in common."""

    model: ModelName = None
    stream: bool | None = None
    """True unless said otherwise."""
    options: Options | None = None
    format: Annotated[
        Grammar | None, PlainValidator(_read_format), WithJsonSchema(_FORMAT_SCHEMA)
    ] = None
    think: Think = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    keep_alive: KeepAlive = None
    template: Annotated[Any, only("")] = None
    max_wait: MaxWait = None
    priority: AskedPriority = None

    @property
    def streams(self) -> bool:
        return self.stream is not False

    @property
    def num_logprobs(self) -> int | None:
        return (self.top_logprobs or 0) if self.logprobs else None


def _read_messages(value: object) -> tuple[ChatMessage, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong_value("is no list of messages")
    if len(value) > MAX_MESSAGES:
        raise wrong_value(f"has {len(value)} entries, the limit is {MAX_MESSAGES}")
    calls = _Calls()
    return tuple(_read_message(f"[{index}]", message, calls) for index, message in enumerate(value))


@dataclass(slots=True)
class _Calls:
    """Those made so far: results name one by its id, of older clients by its tool, and then mean the latest."""

    names: dict[str, str] = field(default_factory=dict)
    """By id."""
    latest_ids: dict[str, str] = field(default_factory=dict)
    """By tool."""

    def add(self, call: ToolCall) -> None:
        self.names[call.call_id], self.latest_ids[call.name] = call.name, call.call_id


def _read_message(place: str, value: object, before: _Calls) -> ChatMessage:
    if not isinstance(value, dict):
        raise wrong_value(f'has at {place} no object like {{"role": "user", "content": "..."}}')
    role = value.get("role")
    if role not in _ROLES:
        raise wrong_value(f"has at {place} the role {role!r:.40}, allowed are {', '.join(_ROLES)}")
    if value.get("images"):
        raise wrong_value(f"has images at {place}; this model takes only text")
    calls = _read_calls(f"{place}.tool_calls", place, value.get("tool_calls"))
    for call in calls:
        before.add(call)
    name = _text(f"{place}.tool_name", value.get("tool_name", value.get("name")))
    call_id = _text(f"{place}.tool_call_id", value.get("tool_call_id"))
    return ChatMessage(
        role=role,
        content=_text(f"{place}.content", value.get("content")),
        reasoning=_text(f"{place}.thinking", value.get("thinking")),
        tool_calls=calls,
        tool_call_id=(call_id or before.latest_ids.get(name, "")) if role == "tool" else "",
        name=(name or before.names.get(call_id, "")) if role == "tool" else "",
    )


def _read_calls(field: str, prefix: str, value: object) -> tuple[ToolCall, ...]:
    """Older clients know no ids of calls; there each gets one from its place."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong_value(f"has at {field} no list of calls")
    calls = []
    for index, call in enumerate(value):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise wrong_value(f"has at {field}[{index}] no object with a function")
        call_id = _text(f"{field}[{index}].id", call.get("id"))
        call_id = call_id or f"call_{prefix.strip('[]')}_{index}"
        try:
            calls.append(make_call(call_id, function.get("name"), function.get("arguments")))
        except ValueError as error:  # wrong_value is one
            raise wrong_value(f"at {field}[{index}] {error}") from None
    return tuple(calls)


def _text(place: str, value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong_value(f"has at {place} {value!r:.40}, which is no string")
    return value


_MESSAGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "role": {"enum": list(_ROLES)},
        "content": {"type": ["string", "null"]},
        "thinking": {"type": ["string", "null"]},
        "images": {"type": ["array", "null"], "maxItems": 0},
        "tool_calls": {
            "type": ["array", "null"],
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": ["string", "null"]},
                    "function": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
                            "arguments": {"type": ["object", "null"]},
                        },
                        "required": ["name"],
                    },
                },
                "required": ["function"],
            },
        },
        "tool_name": {"type": ["string", "null"]},
        "tool_call_id": {"type": ["string", "null"]},
    },
    "required": ["role"],
}


class ChatRequest(ReplyFields):
    """POST /api/chat. Without messages the model is loaded."""

    messages: Annotated[
        tuple[ChatMessage, ...],
        PlainValidator(_read_messages),
        WithJsonSchema({"anyOf": [{"type": "array", "items": _MESSAGE_SCHEMA}, {"type": "null"}]}),
    ] = ()
    tools: Annotated[
        tuple[Tool, ...],
        PlainValidator(read_tools),
        WithJsonSchema(
            {"anyOf": [{"type": "array", "items": {"type": "object"}}, {"type": "null"}]}
        ),
    ] = ()


class GenerateRequest(ReplyFields):
    """POST /api/generate. Without a prompt the model is loaded."""

    prompt: str | None = None
    suffix: str | None = None
    """The reply fills the gap between prompt and suffix."""
    system: str | None = None
    raw: bool | None = None
    """The prompt is taken as it is, with no template."""
    images: Annotated[Any, only([])] = None
    context: Annotated[Any, only([])] = None


class EmbedRequest(WireModel):
    """POST /api/embed."""

    model: ModelName = None
    input: str | Annotated[list[str], Field(max_length=MAX_TEXTS)]
    truncate: bool | None = None
    """A text that is too long is cut off at its end; true unless said otherwise."""
    keep_alive: KeepAlive = None
    dimensions: Annotated[int, Field(ge=0, le=1 << 20)] | None = None
    max_wait: MaxWait = None


class EmbeddingsRequest(WireModel):
    """POST /api/embeddings, the older form for one text."""

    model: ModelName = None
    prompt: str
    keep_alive: KeepAlive = None
    max_wait: MaxWait = None


class ShowRequest(WireModel):
    """POST /api/show."""

    model: ModelName = None
    name: ModelName = None
    """The older name of `model`."""
