"""Tools for models whose template knows nothing of them: described in plain words, called and answered as JSON.

The reply is read by `engine.text.replies.json_families.GENERIC`. Used on the intake thread. No torch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from engine.api import Chat, ChatMessage, Tool, ToolCall, ToolChoice
from engine.text.replies.schemas import read_arguments
from engine.text.template_values import TemplateShape, tool_values

_HEAD = "You may use these tools, given as JSON:"
_FORMAT = '{"tool_calls": [{"name": "<name of the tool>", "arguments": {<its arguments>}}]}'
_MAY = "To call tools, answer with nothing but JSON of this form:\n{form}\nElse answer as usual."
_MUST = "Answer with a call: nothing but JSON of this form:\n{form}"
_ONE = "Call at most one tool at a time."


def adapted(chat: Chat, shape: TemplateShape) -> Chat:
    """The chat with what its template cannot show put into words that it can."""
    messages: list[ChatMessage] = []
    follows_result = False
    for message in chat.messages:
        shown = _shown(message, shape)
        if follows_result and shown.role == "user":
            # one turn of both: many templates take strictly turns
            content = f"{messages[-1].content}\n\n{shown.content}"
            messages[-1] = replace(messages[-1], content=content)
        else:
            messages.append(shown)
        follows_result = shown is not message and shown.role == "user"
    if chat.tools and not shape.knows_tools:
        messages = _introduced(messages, describe(chat))
    return replace(chat, messages=tuple(messages))


def describe(chat: Chat) -> str:
    """What the model is told about the tools of a chat."""
    must = chat.tool_choice in (ToolChoice.REQUIRED, ToolChoice.NAMED)
    lines = [_HEAD, *(_line(tool) for tool in chat.tools), "", (_MUST if must else _MAY)]
    if not chat.calls_in_parallel:
        lines.append(_ONE)
    return "\n".join(lines).replace("{form}", _FORMAT)


def _line(tool: Tool) -> str:
    return json.dumps(tool_values(tool, str)["function"], ensure_ascii=False)


def _shown(message: ChatMessage, shape: TemplateShape) -> ChatMessage:
    if message.tool_calls and not shape.writes_calls:
        texts = (message.content, written_calls(message.tool_calls))
        return replace(message, content="\n".join(filter(None, texts)), tool_calls=())
    if message.role == "tool" and not shape.writes_results:
        name = f" of {message.name}" if message.name else ""
        return ChatMessage(role="user", content=f"Result{name}:\n{message.content}")
    return message


def written_calls(calls: Sequence[ToolCall]) -> str:
    """Calls as the model is told to write them."""
    entries = [{"name": call.name, "arguments": read_arguments(call.arguments)} for call in calls]
    return json.dumps({"tool_calls": entries}, ensure_ascii=False)


def _introduced(messages: list[ChatMessage], words: str) -> list[ChatMessage]:
    """With the tools in the system message, which is made where there is none."""
    if messages and messages[0].role in ("system", "developer"):
        first = messages[0]
        return [replace(first, content=f"{first.content}\n\n{words}"), *messages[1:]]
    return [ChatMessage(role="system", content=words), *messages]
