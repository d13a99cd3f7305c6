"""What a chat template is given: messages, calls and tools as the plain values that Hugging Face's renderer passes on.

Templates differ in what they expect of some of them (`TemplateShape`). Used on the intake thread. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.api import ChatMessage, Tool, ToolCall
from engine.text.replies.parts import ID_CHARS, new_call_id
from engine.text.replies.schemas import read_arguments, read_object

Values = dict[str, Any]
Change = Callable[[str], str]
"""Of a text that somebody wrote; see `engine.text.veil`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateShape:
    """What one template does with tools and reasoning, and how it wants them."""

    knows_tools: bool = False
    """It tells the model about tools."""
    writes_calls: bool = False
    """It shows the calls of earlier turns."""
    writes_results: bool = False
    """It shows what tools gave back."""
    takes_text_arguments: bool = False
    """Arguments as the text of a JSON object instead of the object."""
    takes_empty_content: bool = False
    """An assistant's turn with calls and no text has "" as its content instead of None."""
    takes_short_ids: bool = False
    """Ids of calls are nine letters and digits, and no others."""
    reasoning_key: str = ""
    """Where it looks for an assistant's reasoning; "": nowhere."""


_SCHEMA_WORDS = frozenset(
    {
        "type", "properties", "required", "items", "enum", "description", "default", "title", "format", "const",
        "anyOf", "oneOf", "allOf", "not", "additionalProperties", "minimum", "maximum", "minLength", "maxLength",
        "minItems", "maxItems", "pattern", "nullable", "examples", "$ref", "$defs", "definitions", "string",
        "number", "integer", "boolean", "array", "object", "null",
    }
)  # fmt: skip
"""What templates look for in a schema, which must stay as it is."""


def tool_values(tool: Tool, change: Change) -> Values:
    """One tool. Templates count on a description and on properties, so both are there, if empty."""
    schema = read_object(tool.parameters) or {"type": "object"}
    if schema.get("type") == "object":
        schema.setdefault("properties", {})
    function = {
        "name": change(tool.name),
        "description": change(tool.description),
        "parameters": changed(schema, lambda t: t if t in _SCHEMA_WORDS else change(t)),
    }
    return {"type": "function", "function": function}


def message_values(message: ChatMessage, shape: TemplateShape, change: Change) -> Values:
    """One turn. Keys that say nothing are left out: templates ask whether they are there."""
    content = change(message.content)
    values: Values = {"role": message.role, "content": content}
    if message.tool_calls:
        if not content and not shape.takes_empty_content:
            values["content"] = None
        values["tool_calls"] = [_call_values(call, shape, change) for call in message.tool_calls]
    if message.reasoning and shape.reasoning_key:
        values[shape.reasoning_key] = change(message.reasoning)
    if message.tool_call_id:
        values["tool_call_id"] = change(_call_id(message.tool_call_id, shape))
    if message.name:
        values["name"] = change(message.name)
    return values


def _call_values(call: ToolCall, shape: TemplateShape, change: Change) -> Values:
    if shape.takes_text_arguments:
        arguments: object = change(call.arguments)
    else:
        arguments = changed(read_arguments(call.arguments), change)
    function = {"name": change(call.name), "arguments": arguments}
    values: Values = {"type": "function", "function": function}
    if call.call_id:
        values["id"] = change(_call_id(call.call_id, shape))
    return values


def _call_id(call_id: str, shape: TemplateShape) -> str:
    is_short = len(call_id) == ID_CHARS and call_id.isascii() and call_id.isalnum()
    return call_id if is_short or not shape.takes_short_ids else new_call_id(call_id)


def changed(value: Any, change: Change) -> Any:
    """A JSON value with every text in it changed, names of members too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): changed(child, change) for key, child in value.items()}
    if isinstance(value, list):
        return [changed(child, change) for child in value]
    return value


def named_results(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages, each result with the name of the tool whose call it answers, where that is known."""
    names: dict[str, str] = {}
    named = []
    for message in messages:
        names |= {call.call_id: call.name for call in message.tool_calls}
        if message.role == "tool" and not message.name and message.tool_call_id in names:
            name = names[message.tool_call_id]
            message = ChatMessage(
                role="tool", content=message.content, tool_call_id=message.tool_call_id, name=name
            )
        named.append(message)
    return named
