"""What clients may send to POST /v1/responses, checked strictly; a wrong value names its field.

Fields nobody here knows are ignored; those that would change the answer and cannot be honoured are refused by name. Any
thread; no web framework.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from engine.api import Tool, ToolChoice
from studio.server.framing import Json
from studio.server.priority_field import AskedPriority
from studio.server.protocol import MaxTokens, SamplingFields, read_stops
from studio.server.responses.items import Item, read_items
from studio.server.structured import TextFormat
from studio.server.tool_fields import MAX_TOOLS, read_name, read_tool_list, tool_at
from studio.server.wire import MaxWait, Object, Objects, PingInterval, WireModel, only, wrong_value

_MOST_METADATA = 16
_MOST_METADATA_KEY = 64
_MOST_METADATA_VALUE = 512
_LOGPROBS = "message.output_text.logprobs"
_SEALS = "reasoning.encrypted_content"
_WORDS = {
    "none": ToolChoice.NONE,
    "auto": ToolChoice.AUTO,
    "required": ToolChoice.REQUIRED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceField:
    """`tool_choice`."""

    kind: ToolChoice = ToolChoice.AUTO
    name: str = ""
    allowed: frozenset[str] | None = None
    """The only tools that may be called; None: all."""
    wire: Json | str = "auto"
    """As it was sent, to be told again."""


def _read_tools(value: object) -> tuple[Tool, ...]:
    return read_tool_list(value, _read_tool)


def _read_tool(place: str, value: object) -> Tool:
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str):
        raise wrong_value(f'has at {place} no object like {{"type": "function", "name": "..."}}')
    if kind != "function":
        raise wrong_value(
            f"has at {place} a tool of type {kind[:40]!r}; only tools of type function are served"
        )
    return tool_at(place, value, schema=value.get("parameters"))


def _read_choice(value: object) -> ChoiceField:
    if value is None:
        return ChoiceField()
    if isinstance(value, str) and value in _WORDS:
        return ChoiceField(kind=_WORDS[value], wire=value)
    kind = value.get("type") if isinstance(value, dict) else value
    if isinstance(value, dict) and kind == "function":
        name = read_name("name", value.get("name"))
        return ChoiceField(kind=ToolChoice.NAMED, name=name, wire=value)
    if isinstance(value, dict) and kind == "allowed_tools":
        return _read_allowed(value)
    raise wrong_value(
        f"is {kind!r:.40}, allowed are {', '.join(_WORDS)} and objects of type function and allowed_tools"
    )


def _read_allowed(value: Json) -> ChoiceField:
    """Some of the tools that are offered: the same as offering only these."""
    mode, tools = value.get("mode"), value.get("tools")
    if mode not in ("auto", "required"):
        raise wrong_value(f"has the mode {mode!r:.40}, allowed are auto and required")
    if not isinstance(tools, list) or not tools or len(tools) > MAX_TOOLS:
        raise wrong_value("has no list of tools with at least one")
    names = []
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict) or tool.get("type") != "function":
            raise wrong_value(f"has at tools[{index}] no object of type function")
        names.append(read_name("name", tool.get("name")))
    return ChoiceField(kind=_WORDS[mode], allowed=frozenset(names), wire=value)


def _check_metadata(value: dict[str, str] | None) -> dict[str, str] | None:
    pairs = value or {}
    if len(pairs) > _MOST_METADATA:
        raise wrong_value(f"has {len(pairs)} entries, the limit is {_MOST_METADATA}")
    for key, text in pairs.items():
        if len(key) > _MOST_METADATA_KEY or len(text) > _MOST_METADATA_VALUE:
            raise wrong_value(
                f"has at {key[:_MOST_METADATA_KEY]!r} too long an entry: keys have at most {_MOST_METADATA_KEY} "
                f"characters, values {_MOST_METADATA_VALUE}"
            )
    return value


class TextField(WireModel):
    """`text`: what the reply must look like."""

    format: TextFormat = None
    verbosity: str | None = None


class ReasoningField(WireModel):
    """`reasoning`. Without it, it is as the model's template has it."""

    effort: str | None = None
    summary: str | None = None


class ResponsesRequest(SamplingFields):
    """POST /v1/responses."""

    model: str | None = None
    input: Annotated[tuple[Item, ...] | None, PlainValidator(read_items, str | Objects)] = None
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: MaxTokens = None
    stop: Annotated[list[str] | None, Field(fail_fast=True), BeforeValidator(read_stops)] = None
    text: TextField | None = None
    tools: Annotated[tuple[Tool, ...], PlainValidator(_read_tools, Objects | None)] = ()
    tool_choice: Annotated[ChoiceField, PlainValidator(_read_choice, str | Object | None)] = Field(
        default_factory=ChoiceField
    )
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningField | None = None
    include: Annotated[list[str], Field(fail_fast=True, max_length=64)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    metadata: Annotated[dict[str, str] | None, AfterValidator(_check_metadata)] = None
    truncation: Literal["auto", "disabled"] | None = None
    store: bool | None = None
    user: str | None = None
    stream: bool | None = None
    max_wait: MaxWait = None
    priority: AskedPriority = None
    sse_ping_interval: PingInterval = None
    background: Annotated[Any, only(False)] = None
    conversation: Annotated[Any, only()] = None
    n: Annotated[Any, only(1)] = None
    response_format: Annotated[Any, only()] = None
    prompt: Annotated[Any, only()] = None

    @property
    def logprobs(self) -> int | None:
        """As `engine.api.SamplingParams` has it."""
        if self.top_logprobs or _LOGPROBS in (self.include or ()):
            return self.top_logprobs or 0
        return None

    @property
    def seals_thoughts(self) -> bool:
        return _SEALS in (self.include or ())

    @property
    def is_kept(self) -> bool:
        return self.store is not False
