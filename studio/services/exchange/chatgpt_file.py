"""The chats of a ChatGPT export: its trees of messages become our versions. Pure; any thread, no Qt.

Source: the `conversations.json` of the export that chatgpt.com offers, as of 2026: a list of conversations, each with a
`mapping` of nodes. Tools' and hidden messages are left out; what answered them hangs on what came before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studio.models.chat import NEW_CHAT_TITLE, Conversation, Message, Role
from studio.services.exchange.reading import (
    BrokenEntry,
    ReadChat,
    Reading,
    parents_first,
    time_of,
    title_of,
)

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_SPOKEN = frozenset({"text", "multimodal_text", "code"})
_NOT_TEXT = "[image]"


def is_chatgpt_file(data: object) -> bool:
    """Whether parsed JSON is such a list."""
    return isinstance(data, list) and (
        not data or any(isinstance(one, dict) and "mapping" in one for one in data)
    )


def decode(data: Sequence[Any]) -> Reading:
    """The chats of a parsed file; conversations without a word in them are left out and counted."""
    chats, num_broken, num_empty = [], 0, 0
    for entry in data:
        try:
            found = _read_chat(entry)
        except (BrokenEntry, ValueError, TypeError, AttributeError):
            num_broken += 1
        else:
            chats.extend([found] if found.messages else [])
            num_empty += not found.messages
    return Reading(chats=tuple(chats), num_broken=num_broken, num_empty=num_empty)


def _read_chat(entry: Mapping[str, Any]) -> ReadChat:
    nodes = entry["mapping"] if isinstance(entry, dict) and "mapping" in entry else None
    if not isinstance(nodes, dict):
        raise BrokenEntry("mapping")
    created_s = time_of(entry, "create_time", 0.0)
    numbers = {key: number for number, key in enumerate(nodes, start=1)}
    read = {}
    for key, node in nodes.items():
        if (message := _read_message(node, created_s)) is not None:
            message.message_id = numbers[key]
            read[key] = message
    for key, message in read.items():
        parent = _kept_above(key, nodes, read)
        message.parent_id = numbers[parent] if parent is not None else None
    current = entry.get("current_node")
    shown_key = current if current in read else _kept_above(current, nodes, read)
    shown = read.get(shown_key) if shown_key is not None else None
    messages = parents_first(read.values())
    chat = Conversation(
        chat_id=0,
        title=title_of(str(entry.get("title") or "")) or NEW_CHAT_TITLE,
        created_s=created_s,
        updated_s=time_of(entry, "update_time", created_s),
    )
    leaf_id = shown.message_id if shown is not None else None
    return ReadChat(chat=chat, messages=messages, leaf_id=leaf_id)


def _read_message(node: Any, created_s: float) -> Message | None:
    """The message of a node, with a number to come; None for one that nobody said to anybody."""
    said = node.get("message") if isinstance(node, dict) else None
    if not isinstance(said, dict):
        return None
    role = _ROLES.get(str((said.get("author") or {}).get("role")))
    metadata = said.get("metadata") or {}
    if role is None or metadata.get("is_visually_hidden_from_conversation"):
        return None
    is_to_a_tool = said.get("recipient") not in (None, "all")
    text = _text(said.get("content") or {})
    if is_to_a_tool or not text.strip():
        return None
    return Message(0, 0, role, text, time_of(said, "create_time", created_s))


def _text(content: Mapping[str, Any]) -> str:
    if content.get("content_type") not in _SPOKEN:
        return ""
    if isinstance(whole := content.get("text"), str):
        return whole
    parts = content.get("parts")
    if not isinstance(parts, list):
        return ""
    texts = (part if isinstance(part, str) else _NOT_TEXT for part in parts if part)
    return "\n\n".join(texts)


def _kept_above(key: Any, nodes: Mapping[str, Any], kept: Mapping[str, Message]) -> str | None:
    """The nearest node above that was kept."""
    seen = set()
    while isinstance(key, str) and key in nodes and key not in seen:
        seen.add(key)
        node = nodes[key]
        key = node.get("parent") if isinstance(node, dict) else None
        if key in kept:
            return str(key)
    return None
