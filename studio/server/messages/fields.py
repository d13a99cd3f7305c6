"""What clients may send to Anthropic's routes: the wire types, checked strictly; a wrong value names its field.

Fields nobody here knows are ignored; those that would change the answer and cannot be honoured are refused by name. Any
thread; no web framework.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator

from engine.api import ChatMessage, Grammar, Tool, ToolChoice
from studio.server.messages.blocks import read_system, read_turns
from studio.server.priority_field import AskedPriority
from studio.server.protocol import MAX_STOPS, SamplingFields
from studio.server.structured import schema_grammar
from studio.server.tool_fields import read_name, read_tool_list, tool_at
from studio.server.wire import (
    MaxWait,
    Object,
    Objects,
    PingInterval,
    WireModel,
    only,
    whole_number,
    wrong_value,
)

_CHOICES = {
    "auto": ToolChoice.AUTO,
    "any": ToolChoice.REQUIRED,
    "tool": ToolChoice.NAMED,
    "none": ToolChoice.NONE,
}
_THINKING = {"enabled": True, "adaptive": True, "between_tools": True, "disabled": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """`tool_choice`."""

    choice: ToolChoice = ToolChoice.AUTO
    name: str = ""
    in_parallel: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinking:
    """`thinking`. Without the field it is as the model's template has it."""

    is_on: bool | None = None
    budget_tokens: int | None = None
    is_shown: bool = True


def _read_tools(value: object) -> tuple[Tool, ...]:
    return read_tool_list(value, _read_tool)


def _read_tool(place: str, value: object) -> Tool:
    if not isinstance(value, dict):
        raise wrong_value(f"has at {place} no object")
    kind = value.get("type")
    if kind not in (None, "custom"):
        raise wrong_value(
            f"has at {place} a tool of type {kind!r:.40}; only tools with an input_schema are served"
        )
    if "input_schema" not in value:
        raise wrong_value(f"has at {place} a tool without an input_schema")
    return tool_at(place, value, schema=value["input_schema"])


def _read_tool_use(value: object) -> ToolUse:
    if value is None:
        return ToolUse()
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in _CHOICES:
        raise wrong_value(
            f'is no object like {{"type": "auto"}}; its type may be {", ".join(_CHOICES)}'
        )
    is_single = value.get("disable_parallel_tool_use")
    if is_single is not None and not isinstance(is_single, bool):
        raise wrong_value("has a disable_parallel_tool_use that is neither true nor false")
    choice = _CHOICES[kind]
    name = read_name("name", value.get("name")) if choice is ToolChoice.NAMED else ""
    return ToolUse(choice=choice, name=name, in_parallel=not is_single)


def _read_thinking(value: object) -> Thinking:
    if value is None:
        return Thinking()
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in _THINKING:
        raise wrong_value(
            f'is no object like {{"type": "enabled"}}; its type may be {", ".join(_THINKING)}'
        )
    budget = whole_number(value.get("budget_tokens"))
    if budget is not None and (type(budget) is not int or budget < 0):
        raise wrong_value(f"has the budget_tokens {budget!r:.40}, which is no number of tokens")
    return Thinking(
        is_on=_THINKING[kind],
        budget_tokens=budget if _THINKING[kind] else None,
        is_shown=value.get("display") != "omitted",
    )


def _read_stops(value: object) -> object:
    if isinstance(value, list):
        if len(value) > MAX_STOPS:
            raise wrong_value(f"has {len(value)} strings, the limit is {MAX_STOPS}")
        if "" in value:
            raise wrong_value("has an empty string; leave it out")
    return value


def _read_format(value: object, param: str) -> Grammar | None:
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or kind != "json_schema":
        raise wrong_value('is no object like {"type": "json_schema", "schema": {...}}')
    if not isinstance(value.get("schema"), dict):
        raise wrong_value("has no schema; send the JSON schema that the reply is to match")
    return schema_grammar(value["schema"], param)


_Format = Object | None


class OutputConfig(WireModel):
    """How the reply is to look."""

    effort: str | None = None
    format: Annotated[
        Grammar | None,
        PlainValidator(lambda value: _read_format(value, "output_config.format"), _Format),
    ] = None
    """What the text of the reply must match."""


class PromptFields(WireModel):
    """What is counted: POST /v1/messages/count_tokens, and a part of POST /v1/messages."""

    model: str | None = None
    messages: Annotated[tuple[ChatMessage, ...], PlainValidator(read_turns, Objects)]
    system: Annotated[str, PlainValidator(read_system, str | Objects | None)] = ""
    tools: Annotated[tuple[Tool, ...], PlainValidator(_read_tools, Objects | None)] = ()
    tool_choice: Annotated[ToolUse, PlainValidator(_read_tool_use, Object | None)] = Field(
        default_factory=ToolUse
    )
    thinking: Annotated[Thinking, PlainValidator(_read_thinking, Object | None)] = Field(
        default_factory=Thinking
    )
    output_config: OutputConfig | None = None
    output_format: Annotated[
        Grammar | None,
        PlainValidator(lambda value: _read_format(value, "output_format"), _Format),
    ] = None
    """The same as `output_config.format`, by its older name."""
    mcp_servers: Annotated[Any, only([])] = None
    container: Annotated[Any, only()] = None
    stop: Annotated[Any, only([])] = None
    n: Annotated[Any, only(1)] = None
    response_format: Annotated[Any, only()] = None


class MessagesRequest(PromptFields, SamplingFields):
    """POST /v1/messages."""

    max_tokens: Annotated[int, Field(ge=1, description="Most tokens of the reply.")]
    stop_sequences: Annotated[
        list[str] | None, Field(fail_fast=True), BeforeValidator(_read_stops)
    ] = None
    stream: bool | None = None
    max_wait: MaxWait = None
    priority: AskedPriority = None
    sse_ping_interval: PingInterval = None
