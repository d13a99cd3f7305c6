"""A chat on the wire: its messages, and the tools that it offers. Any thread; no web framework."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
)

from engine.api import Chat, ChatMessage, Tool, ToolCall
from engine.errors import InvalidRequest
from studio.server.tool_fields import (
    MAX_ID_CHARS,
    MAX_NAME_CHARS,
    AllowedTools,
    Choice,
    offer,
    read_calls,
    read_choice,
    read_template_options,
    read_tools,
)
from studio.server.tool_schemas import CALLS, CONTENT, TOOL_CHOICE, TOOLS
from studio.server.turns import effort_options
from studio.server.wire import WireModel, only, wrong_value

MAX_MESSAGES = 1 << 16
"""Beyond any model's window; it keeps the reading of one request short."""
_SWITCHES = ("enable_thinking", "thinking")
_ROLES = ("system", "developer", "user", "assistant", "tool")


def _read_role(role: str) -> str:
    if role == "function":
        raise wrong_value("is 'function', the older form of 'tool'; send that")
    if role not in _ROLES:
        raise wrong_value(f"is {role[:40]!r}, allowed are {', '.join(_ROLES)}")
    return "system" if role == "developer" else role


def _read_content(value: object) -> object:
    """A string, or a list of text parts as one string, a part a line."""
    return "\n".join(_read_part(part) for part in value) if isinstance(value, list) else value


def _read_part(part: object) -> str:
    if not isinstance(part, dict) or not isinstance(kind := part.get("type"), str):
        raise wrong_value(
            'has a part that is no object with a type, like {"type": "text", "text": "..."}'
        )
    if kind != "text":
        raise wrong_value(f"has a part of type {kind[:40]!r}; this model takes only text parts")
    if not isinstance(text := part.get("text"), str):
        raise wrong_value("has a text part without a string as its text")
    return text


def _older_than(newer: str) -> AfterValidator:
    """Refuses a field that has a newer form, unless it asks for nothing."""

    def check(value: object) -> object:
        if value not in (None, [], "none", "auto"):
            raise wrong_value(f"is the older form of {newer}; send that")
        return value

    return AfterValidator(check)


class Message(WireModel):
    """One turn of a chat. `developer` has become `system`, and text parts one string."""

    role: Annotated[str, AfterValidator(_read_role)]
    tool_calls: Annotated[
        tuple[ToolCall, ...], BeforeValidator(read_calls), WithJsonSchema(CALLS)
    ] = ()
    function_call: Annotated[Any, _older_than("tool_calls")] = None
    audio: Annotated[Any, only()] = None
    tool_call_id: Annotated[str, Field(max_length=MAX_ID_CHARS)] | None = None
    name: Annotated[str, Field(max_length=MAX_NAME_CHARS)] | None = None
    reasoning_content: str | None = None
    content: Annotated[str | None, BeforeValidator(_read_content), WithJsonSchema(CONTENT)] = Field(
        default=None, validate_default=True
    )

    @field_validator("tool_calls")
    @classmethod
    def _only_of_assistants(
        cls, calls: tuple[ToolCall, ...], info: ValidationInfo
    ) -> tuple[ToolCall, ...]:
        if calls and info.data.get("role") not in ("assistant", None):
            raise wrong_value("belongs to messages of the assistant alone; leave it out")
        return calls

    @field_validator("content")
    @classmethod
    def _said_something(cls, content: str | None, info: ValidationInfo) -> str | None:
        if content is None and info.data.get("role") not in ("assistant", None):
            raise wrong_value("is missing; only an assistant's message may be without")
        return content

    def turn(self) -> ChatMessage:
        """As the engine takes it. The name of a person is none of a tool, and no template's business."""
        is_result = self.role == "tool"
        return ChatMessage(
            role=self.role,
            content=self.content or "",
            reasoning=self.reasoning_content or "",
            tool_calls=self.tool_calls,
            tool_call_id=(self.tool_call_id or "") if is_result else "",
            name=(self.name or "") if is_result else "",
        )


class ChatFields(WireModel):
    """What a chat begins with."""

    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=MAX_MESSAGES)]
    tools: Annotated[tuple[Tool, ...], BeforeValidator(read_tools), WithJsonSchema(TOOLS)] = ()
    tool_choice: Annotated[
        Choice | AllowedTools | None, BeforeValidator(read_choice), WithJsonSchema(TOOL_CHOICE)
    ] = None
    functions: Annotated[Any, _older_than("tools")] = None
    function_call: Annotated[Any, _older_than("tool_choice")] = None
    parallel_tool_calls: bool | None = None
    chat_template_kwargs: Annotated[
        tuple[tuple[str, object], ...],
        BeforeValidator(read_template_options),
        WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "null"}]}),
    ] = ()
    reasoning_effort: str | None = None
    """For templates that know such a thing; one in `chat_template_kwargs` goes first."""
    continue_final_message: bool | None = None
    add_generation_prompt: bool | None = None

    def chat(self) -> Chat:
        """Raises InvalidRequest for a tool that must be called and is not there, and for fields that contradict."""
        asked = offer(self.tools, self.tool_choice, calls_in_parallel=self.parallel_tool_calls)
        return Chat(
            messages=tuple(message.turn() for message in self.messages),
            tools=asked.tools,
            tool_choice=asked.tool_choice,
            tool_name=asked.tool_name,
            calls_in_parallel=asked.calls_in_parallel,
            template_options=tuple(self._options().items()),
            continues=self._continues(),
        )

    def _continues(self) -> bool:
        """Whether the reply goes on with the last message, of the assistant.

        Where nothing is said it does, as at llama-server and on our other routes: it is how local clients have a reply
        begin with words of theirs. `continue_final_message` false, or `add_generation_prompt` true, begins a turn.
        """
        wanted, opens_turn = self.continue_final_message, self.add_generation_prompt
        last = self.messages[-1]
        can = last.role == "assistant" and not last.tool_calls
        if wanted and opens_turn:
            raise InvalidRequest(
                "continue_final_message and add_generation_prompt are both true: the last message is gone on with, "
                "or a new one begun; leave one out",
                param="continue_final_message",
            )
        if opens_turn is False and not wanted:
            raise InvalidRequest(
                "add_generation_prompt is false: then it is the last message that is gone on with; "
                "send continue_final_message true with it, or leave it out",
                param="add_generation_prompt",
            )
        if wanted and not can:
            raise InvalidRequest(
                "continue_final_message is true, and the last message is not a text of the assistant; send "
                "one, or leave it out",
                param="continue_final_message",
            )
        return can and wanted is not False and not opens_turn

    def _options(self) -> dict[str, object]:
        """What is given by name goes before what the effort means."""
        given, options = (
            dict(self.chat_template_kwargs),
            dict(effort_options(self.reasoning_effort)),
        )
        if any(name in given for name in _SWITCHES):
            options = {name: value for name, value in options.items() if name not in _SWITCHES}
        return options | given
