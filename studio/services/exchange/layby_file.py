"""Layby's own file of chats: JSON with everything that the history holds of them. Pure; any thread, no Qt.

Written by this version, read by this and later ones: what a reader does not know it leaves alone.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any

from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import NEW_CHAT_TITLE, Conversation, Message, MessageStatus, Role
from studio.models.chat_settings import ChatSettings, Preset
from studio.models.tool_use import ChatTools
from studio.services.call_rows import settled
from studio.services.exchange.reading import (
    BrokenEntry,
    ReadChat,
    Reading,
    ended,
    parents_first,
    text_of,
    time_of,
    title_of,
)
from studio.services.history_rows import (
    message_from_row,
    message_row,
    preset_from_row,
    preset_row,
    valid_text,
)

FORMAT = "layby chats"
VERSION = 1


def encode(entries: Sequence[Mapping[str, Any]], *, now_s: float) -> bytes:
    """The file of these entries."""
    data = {
        "format": FORMAT,
        "version": VERSION,
        "exported_s": now_s,
        "chats": entries,
    }
    return json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def is_layby_file(data: object) -> bool:
    """Whether parsed JSON is such a file."""
    return isinstance(data, dict) and data.get("format") == FORMAT


def decode(data: Mapping[str, Any]) -> Reading:
    """The chats of a parsed file. Raises BrokenEntry for one that is none."""
    entries = data.get("chats")
    if not isinstance(entries, list):
        raise BrokenEntry("chats")
    chats, num_broken = [], 0
    for entry in entries:
        try:
            chats.append(_read_chat(entry))
        except (BrokenEntry, ValueError, TypeError, AttributeError):
            num_broken += 1
    return Reading(chats=tuple(chats), num_broken=num_broken)


def entry_of(chat: Conversation, folder: Sequence[str]) -> dict[str, Any]:
    """A chat that is loaded, with the names of its folders from the top."""
    return {
        "title": valid_text(chat.title),
        "created_s": chat.created_s,
        "updated_s": chat.updated_s,
        "folder": [valid_text(name) for name in folder],
        "is_pinned": chat.is_pinned,
        "is_archived": chat.is_archived,
        "draft": valid_text(chat.draft),
        "settings": _settings(chat.settings),
        "tools": list(chat.tools.servers),
        "shown_until": chat.leaf_id,
        "messages": [_message(message) for message in chat.tree],
    }


def _settings(settings: ChatSettings) -> dict[str, Any]:
    row = preset_row(Preset(preset_id=0, name="", settings=settings))
    _, _, system_prompt, sampling, max_tokens, stop = row
    return {
        "system_prompt": system_prompt,
        "sampling": json.loads(str(sampling)),
        "max_tokens": max_tokens,
        "stop": json.loads(str(stop)),
    }


def _message(message: Message) -> dict[str, Any]:
    stats, calls = message_row(message)[7:9]
    return {
        "id": message.message_id,
        "parent": message.parent_id,
        "role": message.role.value,
        "text": valid_text(message.text),
        "created_s": message.created_s,
        "status": ended(message.status, message.role).value,
        "note": valid_text(message.note),
        "stats": json.loads(str(stats)),
        "calls": json.loads(str(calls)),
        "attachments": [_attachment(one) for one in message.attachments],
    }


def _attachment(attachment: Attachment) -> dict[str, Any]:
    return {
        "name": valid_text(attachment.name),
        "kind": attachment.kind.value,
        "text": valid_text(attachment.text),
        "num_tokens": attachment.num_tokens,
        "path": valid_text(attachment.path),
        "data": base64.b64encode(attachment.data).decode("ascii"),
    }


def _read_chat(entry: Mapping[str, Any]) -> ReadChat:
    created_s = time_of(entry, "created_s", 0.0)
    chat = Conversation(
        chat_id=0,
        title=title_of(text_of(entry, "title")) or NEW_CHAT_TITLE,
        created_s=created_s,
        updated_s=time_of(entry, "updated_s", created_s),
        settings=_read_settings(entry.get("settings") or {}),
        is_pinned=entry.get("is_pinned") is True,
        is_archived=entry.get("is_archived") is True,
        draft=text_of(entry, "draft", ""),
        tools=_read_tools(entry.get("tools")),
    )
    read = [_read_message(one) for one in entry.get("messages") or ()]
    shown = next((one for one in read if one.message_id == entry.get("shown_until")), None)
    messages = parents_first(read)
    folder = entry.get("folder") or ()
    return ReadChat(
        chat=chat,
        messages=messages,
        leaf_id=shown.message_id if shown is not None else None,
        folder=tuple(title_of(name) for name in folder if isinstance(name, str) and title_of(name)),
    )


def _read_settings(entry: Mapping[str, Any]) -> ChatSettings:
    max_tokens = entry.get("max_tokens")
    if type(max_tokens) is not int or max_tokens < 1:
        max_tokens = None
    sampling, stop = entry.get("sampling"), entry.get("stop")
    row = (
        0,
        "of an imported chat",
        text_of(entry, "system_prompt", ""),
        json.dumps(sampling if isinstance(sampling, dict) else {}),
        max_tokens,
        json.dumps(stop if isinstance(stop, list) else []),
    )
    return preset_from_row(row).settings


def _read_tools(names: object) -> ChatTools:
    """Which servers the chat used. What it allowed for always is asked anew here."""
    listed = names if isinstance(names, list) else []
    return ChatTools(servers=tuple(name for name in listed if isinstance(name, str)))


def _read_message(entry: Mapping[str, Any]) -> Message:
    message_id, parent_id = entry.get("id"), entry.get("parent")
    if type(message_id) is not int or (parent_id is not None and type(parent_id) is not int):
        raise BrokenEntry("id")
    stats, calls = entry.get("stats"), entry.get("calls")
    role = Role(text_of(entry, "role"))
    row = (
        message_id,
        0,
        role.value,
        text_of(entry, "text"),
        time_of(entry, "created_s", 0.0),
        ended(MessageStatus(text_of(entry, "status", "done")), role).value,
        text_of(entry, "note", ""),
        json.dumps(stats if isinstance(stats, dict) else {}),
        json.dumps(calls if isinstance(calls, list) else []),
        parent_id,
    )
    message = message_from_row(row)
    message.calls = settled(message.calls)
    message.attachments = tuple(_read_attachment(one) for one in entry.get("attachments") or ())
    return message


def _read_attachment(entry: Mapping[str, Any]) -> Attachment:
    num_tokens = entry.get("num_tokens")
    try:
        data = base64.b64decode(text_of(entry, "data", ""), validate=True)
    except binascii.Error as error:
        raise BrokenEntry("data") from error
    return Attachment(
        name=title_of(text_of(entry, "name")),
        kind=AttachmentKind(text_of(entry, "kind")),
        text=text_of(entry, "text", ""),
        num_tokens=num_tokens if type(num_tokens) is int else None,
        path=text_of(entry, "path", ""),
        data=data,
    )
