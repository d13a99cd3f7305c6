"""The items that a response is made of, in and out: messages, thoughts, calls and their results.

Read into a conversation's turns, and kept as they are told again. Raises `wrong_value`, naming the place below the
field. Any thread; no web framework.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from engine.api import ToolCall
from studio.server.framing import Json
from studio.server.protocol import MAX_MESSAGES
from studio.server.tool_fields import make_call
from studio.server.turns import ASSISTANT, Turns
from studio.server.wire import wrong_value

_ROLES = {"user": "user", "system": "system", "developer": "system", ASSISTANT: ASSISTANT}
_TEXT_PARTS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""Types of parts that are text, and the field that has it."""
_MOST_ID_CHARS = 256
_SEAL = "layby."


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message."""

    wire: Json
    role: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """What the assistant thought."""

    wire: Json
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A function that the assistant called."""

    wire: Json
    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a function gave back."""

    wire: Json
    call_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An item of a response that is kept."""

    wire: Json
    item_id: str


Item = Said | Thought | Called | Answered | Reference


def read_items(value: object) -> tuple[Item, ...]:
    """`input`: a text of the user, or a list of items."""
    if isinstance(value, str):
        return (_message("", {"role": "user", "content": value}),)
    if not isinstance(value, list):
        raise wrong_value("is neither a string nor a list of items")
    if len(value) > MAX_MESSAGES:
        raise wrong_value(f"has {len(value)} items, the limit is {MAX_MESSAGES}")
    return tuple(read_item(f"[{index}]", item) for index, item in enumerate(value))


def read_item(place: str, item: object) -> Item:
    """One item, of a request or of a reply that was told."""
    if not isinstance(item, dict):
        raise wrong_value(f"has at {place} no object")
    kind = item.get("type")
    if kind is None:
        kind = "message" if "role" in item else "item_reference"
    match kind:
        case "message":
            return _message(place, item)
        case "reasoning":
            return _thought(place, item)
        case "function_call":
            return _called(place, item)
        case "function_call_output":
            return _answered(place, item)
        case "item_reference":
            return Reference(wire=item, item_id=_string(place, item, "id"))
    raise wrong_value(
        f"has at {place} an item of type {kind!r:.40}; served are message, reasoning, function_call, "
        "function_call_output and item_reference"
    )


def sealed(text: str) -> str:
    """Thoughts as `encrypted_content`: what clients hand back that keep no thoughts which they can read.

    It is no secret, only a text that they leave alone.
    """
    return _SEAL + base64.b64encode(text.encode()).decode()


def _unsealed(value: object) -> str:
    """What others have sealed nobody here can read."""
    if not isinstance(value, str) or not value.startswith(_SEAL):
        return ""
    try:
        return base64.b64decode(value.removeprefix(_SEAL), validate=True).decode()
    except ValueError:
        return ""


def add_to(turns: Turns, items: Iterable[Item]) -> None:
    """The items as turns. References must have been followed."""
    for item in items:
        match item:
            case Said(role=role, texts=texts):
                turns.say(role, texts)
            case Thought(text=text):
                turns.think(text)
            case Called(call=call):
                turns.call(call)
            case Answered(call_id=call_id, text=text):
                turns.answer(call_id, text)


def _message(place: str, item: Json) -> Said:
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise wrong_value(f"has at {place} the role {role!r:.40}, allowed are {', '.join(_ROLES)}")
    texts = _texts(place, item, "content")
    kind = "output_text" if role == ASSISTANT else "input_text"
    more: Json = {"annotations": []} if role == ASSISTANT else {}
    wire = {
        "id": _id_of(item, "msg"),
        "type": "message",
        "status": "completed",
        "role": role,
        "content": [{"type": kind, "text": text, **more} for text in texts],
    }
    return Said(wire=wire, role=_ROLES[role], texts=texts)


def _thought(place: str, item: Json) -> Thought:
    """Its own words where they are there, else the summary."""
    content = _parts(place, item, "content", "reasoning_text")
    summary = _parts(place, item, "summary", "summary_text")
    seal = item.get("encrypted_content")
    wire = {
        "id": _id_of(item, "rs"),
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in summary],
        "content": [{"type": "reasoning_text", "text": text} for text in content],
    }
    text = "\n".join(content) or _unsealed(seal) or "\n".join(summary)
    return Thought(wire=wire, text=text)


def _called(place: str, item: Json) -> Called:
    try:
        call = make_call(item.get("call_id"), item.get("name"), item.get("arguments"))
    except ValueError as error:  # wrong_value is one
        raise wrong_value(f"at {place} {error}") from None
    wire = {
        "id": _id_of(item, "fc"),
        "type": "function_call",
        "status": "completed",
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments,
    }
    return Called(wire=wire, call=call)


def _answered(place: str, item: Json) -> Answered:
    call_id, text = _string(place, item, "call_id"), "\n".join(_texts(place, item, "output"))
    wire = {
        "id": _id_of(item, "fco"),
        "type": "function_call_output",
        "status": "completed",
        "call_id": call_id,
        "output": text,
    }
    return Answered(wire=wire, call_id=call_id, text=text)


def _texts(place: str, item: Json, field: str) -> tuple[str, ...]:
    """A string, or a list of parts that are text."""
    value = item.get(field)
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise wrong_value(f"has at {place}.{field} neither a string nor a list of parts")
    texts = []
    for index, part in enumerate(value):
        where = f"{place}.{field}[{index}]"
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            raise wrong_value(
                f'has at {where} no part with a type, like {{"type": "input_text", "text": "..."}}'
            )
        if kind not in _TEXT_PARTS:
            raise wrong_value(
                f"has at {where} a part of type {kind[:40]!r}; this model takes only text"
            )
        texts.append(_string(where, part, _TEXT_PARTS[kind]))
    return tuple(texts)


def _parts(place: str, item: Json, field: str, kind: str) -> tuple[str, ...]:
    """The texts of a reasoning item's parts; null is none."""
    value = item.get(field)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong_value(f"has at {place}.{field} no list of parts")
    for index, part in enumerate(value):
        if not isinstance(part, dict) or part.get("type") != kind:
            raise wrong_value(f"has at {place}.{field}[{index}] no part of type {kind!r}")
    return tuple(
        _string(f"{place}.{field}[{index}]", part, "text") for index, part in enumerate(value)
    )


def _string(place: str, item: Any, field: str) -> str:
    if not isinstance(value := item.get(field), str):
        raise wrong_value(f"has at {place} no string as its {field}")
    return value


def _id_of(item: Json, prefix: str) -> str:
    """The one that it has, or a fresh one."""
    given = item.get("id")
    if isinstance(given, str) and 0 < len(given) <= _MOST_ID_CHARS:
        return given
    return f"{prefix}_{uuid.uuid4().hex}"
