"""What a request may begin with: a conversation, text, tokens, or text with a gap.

Part of the engine's door beside `engine.api`, which re-exports it. Standard library only; immutable, any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model may call."""

    name: str
    description: str = ""
    parameters: str = "{}"
    """JSON schema of its arguments, as JSON text."""
    is_strict: bool = False
    """Arguments must match the schema: they are enforced while they are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that the assistant made in an earlier turn."""

    call_id: str
    name: str
    arguments: str
    """A JSON object, as JSON text; of a call that went wrong whatever there is of it."""


class ToolChoice(Enum):
    """Whether the model calls a tool."""

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"
    NAMED = "named"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One turn as the chat template sees it."""

    role: str
    content: str
    reasoning: str = ""
    """What the assistant thought before its answer; templates mostly drop it from earlier turns."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Of an assistant's turn."""
    tool_call_id: str = ""
    """Of a tool's turn: the call that this is the result of."""
    name: str = ""
    """Of a tool's turn: the tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A conversation, rendered by the model's own template; user text never becomes a control token."""

    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice = ToolChoice.AUTO
    tool_name: str = ""
    """The one that must be called, with `ToolChoice.NAMED`."""
    calls_in_parallel: bool = True
    """One turn may call several tools."""
    template_options: tuple[tuple[str, object], ...] = ()
    """Further variables of the template, like `enable_thinking`; JSON values."""
    continues: bool = False
    """The last message is the beginning of the reply, which goes on with it from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Raw text, tokenised with the model's BOS rule and no template."""

    text: str
    reads_control: bool = False
    """Control tokens spelled out in it are tokens: it has been through a template already."""
    begins_anew: bool = False
    """Where there is nothing in it the reply begins a text of its own; without this there would be no reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenIds:
    """Tokens taken as they are."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Infill:
    """Text with a gap, which the reply fills; only for models that have tokens for that."""

    before: str
    after: str
    context: str = ""
    """Text that stands before all of it, such as of other files."""


Prompt = Chat | Text | TokenIds | Infill
