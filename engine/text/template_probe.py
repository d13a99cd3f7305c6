"""What a template does with tools and reasoning, found out by rendering a small conversation in several ways.

Templates say so nowhere; what comes out of them does. Used on the intake thread, once for each template. No torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

from engine.api import ChatMessage, Tool, ToolCall
from engine.errors import EngineError
from engine.text.template_values import TemplateShape, Values, message_values, tool_values

Render = Callable[[list[Values], list[Values] | None], str]
"""Messages and tools -> text. Raises EngineError."""

_NAME, _WORDS, _VALUE, _RESULT, _THOUGHT = (
    "probe_tool", "probe words", "probe value", "probe result", "probe thought",
)  # fmt: skip
_TOOL = Tool(
    name=_NAME,
    description=_WORDS,
    parameters='{"type": "object", "required": ["probe"], '
    '"properties": {"probe": {"type": "string", "description": "p"}}}',
)
_CALL = ToolCall(call_id="call_probe", name=_NAME, arguments=f'{{"probe": "{_VALUE}"}}')
_USER = ChatMessage(role="user", content="probe")
_RESULT_TURN = ChatMessage(role="tool", content=_RESULT, tool_call_id=_CALL.call_id, name=_NAME)
_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")


def probe(source: str, render: Render) -> TemplateShape:
    """The shape of the template of this source."""
    knows_tools = _NAME in _rendered(render, [_USER], TemplateShape())
    shape, text = _shape_of_calls(render)
    return replace(
        shape,
        knows_tools=knows_tools,
        writes_calls=_VALUE in text,
        writes_results=_RESULT in text,
        reasoning_key=_reasoning_key(source, render, shape),
    )


def _shape_of_calls(render: Render) -> tuple[TemplateShape, str]:
    """The first way of giving calls that they come out of, and what comes out."""
    conversation = [_USER, _assistant(), _RESULT_TURN]
    nones = _rendered(render, [_USER], TemplateShape()).count("None")
    for empty, short, as_text in product((False, True), repeat=3):
        shape = TemplateShape(
            takes_text_arguments=as_text, takes_empty_content=empty, takes_short_ids=short
        )
        text = _rendered(render, conversation, shape)
        if _VALUE in text and text.count("None") <= nones and f'\\"{_VALUE}' not in text:
            return shape, text  # no None as a word, and no JSON text as JSON once more
    shape = TemplateShape(takes_empty_content=True)
    return shape, _rendered(render, conversation, shape)


def _reasoning_key(source: str, render: Render, shape: TemplateShape) -> str:
    keys = [key for key in _REASONING_KEYS if key in source]
    conversation = [_USER, _assistant(reasoning=_THOUGHT), _RESULT_TURN]
    for key in keys:
        if _THOUGHT in _rendered(render, conversation, replace(shape, reasoning_key=key)):
            return key
    return keys[0] if keys else ""


def _assistant(**more: Any) -> ChatMessage:
    return ChatMessage(role="assistant", content="", tool_calls=(_CALL,), **more)


def _rendered(render: Render, messages: list[ChatMessage], shape: TemplateShape) -> str:
    """The text, "" where the template takes it not."""
    values = [message_values(message, shape, str) for message in messages]
    try:
        return render(values, [tool_values(_TOOL, str)])
    except EngineError:
        return ""
