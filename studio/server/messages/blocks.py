"""Anthropic's messages, whose contents are blocks, read into the turns of a chat.

Raises `wrong_value`, naming the place below the field. Any thread; no web framework.
"""

from __future__ import annotations

from typing import Any

from engine.api import ChatMessage
from studio.server.protocol import MAX_MESSAGES
from studio.server.tool_fields import make_call
from studio.server.turns import ASSISTANT, Turns
from studio.server.wire import wrong_value

_USER = "user"
_ROLES = (_USER, ASSISTANT, "system")
_OF_ASSISTANTS = ("thinking", "redacted_thinking", "tool_use")


def read_system(value: object) -> str:
    """A string, or a list of text blocks as one string, a block a line."""
    if value is None:
        return ""
    return "\n".join(_texts("", value))


def read_turns(value: object) -> tuple[ChatMessage, ...]:
    """`messages` -> turns, at least one."""
    if not isinstance(value, list) or not value:
        raise wrong_value("is no list with at least one message")
    if len(value) > MAX_MESSAGES:
        raise wrong_value(f"has {len(value)} messages, the limit is {MAX_MESSAGES}")
    turns = Turns()
    for index, message in enumerate(value):
        _read_message(f"[{index}]", message, turns)
    return turns.messages()


def _read_message(place: str, message: object, turns: Turns) -> None:
    if not isinstance(message, dict):
        raise wrong_value(f"has at {place} no object")
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise wrong_value(f"has at {place} the role {role!r:.40}, allowed are {', '.join(_ROLES)}")
    content, place = message.get("content"), f"{place}.content"
    if isinstance(content, str):
        turns.say(role, (content,))
        return
    if not isinstance(content, list):
        raise wrong_value(f"has at {place} neither a string nor a list of blocks")
    texts: list[str] = []
    for index, block in enumerate(content):
        _read_block(f"{place}[{index}]", role, block, (texts, turns))
    if texts or not content:
        turns.say(role, texts)


def _read_block(place: str, role: str, block: object, into: tuple[list[str], Turns]) -> None:
    """Texts are collected, as those of one message belong together; everything else is an item of its own."""
    texts, turns = into
    kind = _kind(place, block)
    assert isinstance(block, dict)
    if kind == "text":
        texts.append(_text(place, block, "text"))
    elif kind == "tool_result" and role == _USER:
        if texts:
            turns.say(role, tuple(texts))
            texts.clear()
        turns.answer(_text(place, block, "tool_use_id"), _result(place, block))
    elif kind in _OF_ASSISTANTS and role == ASSISTANT:
        _read_own_block(place, kind, block, turns)
    else:
        raise wrong_value(
            f"has at {place} a block of type {kind[:40]!r}, which a turn of the {role} cannot have here; "
            "this model takes only text, and tools with their results"
        )


def _read_own_block(place: str, kind: str, block: dict[str, Any], turns: Turns) -> None:
    """What only the assistant has. Thoughts that were made unreadable are left out."""
    if kind == "thinking":
        turns.think(_text(place, block, "thinking"))
    elif kind == "tool_use":
        given = block.get("input")
        if isinstance(given, str):
            raise wrong_value(f"has at {place} the input {given[:40]!r}, which is no object")
        try:
            turns.call(make_call(block.get("id"), block.get("name"), given))
        except ValueError as error:  # wrong_value is one
            raise wrong_value(f"at {place} {error}") from None


def _result(place: str, block: dict[str, Any]) -> str:
    content = block.get("content")
    text = "" if content is None else "\n".join(_texts(f"{place}.content", content))
    return text or ("the tool failed" if block.get("is_error") is True else "")


def _texts(place: str, value: object) -> list[str]:
    """A string, or a list of text blocks."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise wrong_value(f"has{_at(place)} neither a string nor a list of blocks")
    texts = []
    for index, block in enumerate(value):
        where = f"{place}[{index}]"
        kind = _kind(where, block)
        if kind != "text":
            raise wrong_value(
                f"has{_at(where)} a block of type {kind[:40]!r}; this model takes only text"
            )
        texts.append(_text(where, block, "text"))
    return texts


def _kind(place: str, block: object) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        raise wrong_value(
            f'has{_at(place)} no block with a type, like {{"type": "text", "text": "..."}}'
        )
    return kind


def _text(place: str, block: Any, name: str) -> str:
    if not isinstance(text := block.get(name), str):
        raise wrong_value(f"has{_at(place)} a block without a string as its {name}")
    return text


def _at(place: str) -> str:
    return f" at {place}" if place else ""
