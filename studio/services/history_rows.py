"""Chats, messages and what belongs to them as rows of the history, and back. Pure functions.

Rows are made on the loop's thread, where the chats live; what is read becomes objects in the store's worker, before
anybody else knows them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import Any

from engine.api import SamplingParams
from engine.errors import InvalidRequest
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import (
    Conversation,
    Message,
    MessageStatus,
    QueuedPrompt,
    ReplyStats,
    Role,
)
from studio.models.chat_settings import ChatSettings, Preset
from studio.models.folder import Folder
from studio.models.one_line import one_line
from studio.services.call_rows import (
    calls_as_json,
    calls_from_json,
    tools_as_json,
    tools_from_json,
)

_log = logging.getLogger(__name__)

Row = tuple[object, ...]

CHAT_COLUMNS = (
    "chat_id, title, created_s, updated_s, system_prompt, sampling, max_tokens, draft, has_unread, stop, preset_id, "
    "folder_id, is_pinned, is_archived, deleted_s, leaf_id, queued, queued_for_model, tools"
)
LAST_END = (
    "(SELECT status FROM messages WHERE message_id = leaf_id), "
    "(SELECT note FROM messages WHERE message_id = leaf_id)"
)
"""Status and note of the last message of the version that is shown, NULL if there is none."""
MESSAGE_COLUMNS = (
    "message_id, chat_id, role, text, created_s, status, note, stats, calls, parent_id"
)
ATTACHMENT_COLUMNS = (
    "attachment_id, chat_id, message_id, holder, name, kind, text, num_tokens, data, path"
)
FOLDER_COLUMNS = "folder_id, name, parent_id, place, is_open"
PRESET_COLUMNS = "preset_id, name, system_prompt, sampling, max_tokens, stop"


class Holder(Enum):
    """What an attachment belongs to."""

    MESSAGE = "message"
    DRAFT = "draft"
    QUEUED = "queued"


def put_statement(table: str, columns: str) -> str:
    """The statement that inserts a row, or updates the one with the same first column."""
    names = columns.split(", ")
    marks = ", ".join("?" for _ in names)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT ({names[0]}) DO UPDATE SET {changes}"


def valid_text(text: str) -> str:
    """`text` with halves of surrogate pairs, which no file and no tokenizer takes, as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _name(text: str) -> str:
    """A name as it is given today; older ones may hold what turns the line that they stand on."""
    return text if text.isprintable() else one_line(text)


def chat_row(chat: Conversation) -> Row:
    """The values of CHAT_COLUMNS."""
    settings = chat.settings
    return (
        chat.chat_id,
        valid_text(chat.title),
        chat.created_s,
        chat.updated_s,
        valid_text(settings.system_prompt),
        _changed_as_json(settings.sampling, SamplingParams()),
        settings.max_tokens,
        valid_text(chat.draft),
        int(chat.has_unread),
        _stop_as_json(settings.stop),
        chat.preset_id,
        chat.folder_id,
        int(chat.is_pinned),
        int(chat.is_archived),
        chat.deleted_s,
        chat.leaf_id,
        valid_text(chat.queued.text) if chat.queued is not None else None,
        int(chat.queued is not None and chat.queued.waits_for_model),
        tools_as_json(chat.tools),
    )


def chat_from_row(row: tuple[Any, ...]) -> Conversation:
    """The chat of CHAT_COLUMNS and LAST_END; its messages and attachments are not loaded."""
    *row_cells, last_status, last_note = row
    cells = dict(zip(CHAT_COLUMNS.split(", "), row_cells, strict=True))
    status, note = _settled(last_status, last_note) if last_status is not None else (None, "")
    return Conversation(
        chat_id=cells["chat_id"],
        title=_name(cells["title"]),
        created_s=cells["created_s"],
        updated_s=cells["updated_s"],
        settings=_settings(cells, f"chat {cells['chat_id']}"),
        preset_id=cells["preset_id"],
        folder_id=cells["folder_id"],
        is_pinned=bool(cells["is_pinned"]),
        is_archived=bool(cells["is_archived"]),
        deleted_s=cells["deleted_s"],
        draft=cells["draft"],
        queued=_queued(cells["queued"], waits_for_model=bool(cells["queued_for_model"])),
        leaf_id=cells["leaf_id"],
        tools=tools_from_json(cells["tools"], f"chat {cells['chat_id']}"),
        has_unread=bool(cells["has_unread"]),
        stored_status=status,
        stored_note=note,
    )


def _settled(stored: str, note: str) -> tuple[MessageStatus, str]:
    """How a reply stands that a program left in the history: none is read while it is being written."""
    status = MessageStatus(stored)
    is_cut = status.is_alive and status is not MessageStatus.TOOLS
    return (MessageStatus.INTERRUPTED, "") if is_cut else (status, note)


def _queued(text: str | None, *, waits_for_model: bool) -> QueuedPrompt | None:
    if text is None:
        return None
    return QueuedPrompt(text=text, waits_for_model=waits_for_model)


def message_row(message: Message) -> Row:
    """The values of MESSAGE_COLUMNS."""
    return (
        message.message_id,
        message.chat_id,
        message.role.value,
        valid_text(message.text),
        message.created_s,
        message.status.value,
        valid_text(message.note),
        _changed_as_json(message.stats, ReplyStats()),
        calls_as_json(message.calls),
        message.parent_id,
    )


def message_from_row(row: tuple[Any, ...]) -> Message:
    """The message of a row, without its attachments."""
    message_id, chat_id, role, text, created_s, status, note, stats, calls, parent_id = row
    settled, note = _settled(status, note)
    message = Message(
        message_id=message_id,
        chat_id=chat_id,
        role=Role(role),
        text=text,
        created_s=created_s,
        status=settled,
        note=note,
        stats=_stats(stats, message_id),
        parent_id=parent_id,
        calls=calls_from_json(calls, f"message {message_id}"),
    )
    if message.status is MessageStatus.TOOLS and not message.is_asking:
        message.status = MessageStatus.INTERRUPTED  # nothing is left to be answered
    return message


def attachment_row(attachment: Attachment) -> Row:
    """The values of ATTACHMENT_COLUMNS after those that say whose it is."""
    return (
        valid_text(attachment.name),
        attachment.kind.value,
        valid_text(attachment.text),
        attachment.num_tokens,
        attachment.data,
        valid_text(attachment.path),
    )


def attachment_from_row(row: tuple[Any, ...]) -> Attachment:
    """The attachment of ATTACHMENT_COLUMNS."""
    attachment_id, _chat_id, _message_id, _holder, name, kind, text, num_tokens, data, path = row
    return Attachment(
        name=_name(name),
        kind=AttachmentKind(kind),
        text=text,
        num_tokens=num_tokens,
        data=data,
        path=path,
        attachment_id=attachment_id,
    )


def folder_row(folder: Folder) -> Row:
    """The values of FOLDER_COLUMNS."""
    name = valid_text(folder.name)
    return folder.folder_id, name, folder.parent_id, folder.place, int(folder.is_open)


def folder_from_row(row: tuple[Any, ...]) -> Folder:
    """The folder of a row."""
    folder_id, name, parent_id, place, is_open = row
    return Folder(
        folder_id=folder_id,
        name=_name(name),
        parent_id=parent_id,
        place=place,
        is_open=bool(is_open),
    )


def preset_row(preset: Preset) -> Row:
    """The values of PRESET_COLUMNS."""
    settings = preset.settings
    return (
        preset.preset_id,
        valid_text(preset.name),
        valid_text(settings.system_prompt),
        _changed_as_json(settings.sampling, SamplingParams()),
        settings.max_tokens,
        _stop_as_json(settings.stop),
    )


def preset_from_row(row: tuple[Any, ...]) -> Preset:
    """The preset of a row."""
    cells = dict(zip(PRESET_COLUMNS.split(", "), row, strict=True))
    settings = _settings(cells, f"preset {cells['name']!r}")
    return Preset(preset_id=cells["preset_id"], name=_name(cells["name"]), settings=settings)


def _settings(cells: Mapping[str, Any], whose: str) -> ChatSettings:
    return ChatSettings(
        system_prompt=cells["system_prompt"],
        sampling=_sampling(cells["sampling"], whose),
        max_tokens=cells["max_tokens"],
        stop=_stop(cells["stop"], whose),
    )


def _stop_as_json(stop: tuple[str, ...]) -> str:
    return json.dumps([valid_text(text) for text in stop])


def _stop(text: str, whose: str) -> tuple[str, ...]:
    if text == "[]":
        return ()
    try:
        values = json.loads(text)
    except ValueError as error:
        _log.warning("%s: its stop strings are not readable (%s)", whose, error)
        return ()
    return tuple(value for value in values if isinstance(value, str) and value)


def _changed_as_json(
    value: SamplingParams | ReplyStats, default: SamplingParams | ReplyStats
) -> str:
    """Only what differs from the default, so that rows stay small and later versions may add fields."""
    if value == default:
        return "{}"  # most are, of thousands
    names = (field.name for field in fields(value))
    values = ((name, getattr(value, name), getattr(default, name)) for name in names)
    return json.dumps({name: new for name, new, plain in values if new != plain})


def _sampling(text: str, whose: str) -> SamplingParams:
    try:
        return _parsed_sampling(text)
    except (ValueError, TypeError, InvalidRequest) as error:
        _log.warning(
            "%s: its sampling settings are not readable (%s); the defaults are used", whose, error
        )
        return SamplingParams()


@lru_cache(maxsize=64)
def _parsed_sampling(text: str) -> SamplingParams:
    """Most of thousands of chats have the same few settings."""
    values = _known(json.loads(text), SamplingParams)
    for name in ("logit_bias", "dry_sequence_breakers"):
        if name in values:
            values[name] = tuple(
                tuple(item) if isinstance(item, list) else item for item in values[name]
            )
    return SamplingParams(**values)


def _stats(text: str, message_id: int) -> ReplyStats:
    if text == "{}":
        return ReplyStats()
    try:
        return ReplyStats(**_known(json.loads(text), ReplyStats))
    except (ValueError, TypeError) as error:
        _log.warning("message %d: its figures are not readable (%s)", message_id, error)
        return ReplyStats()


def _known(
    values: Mapping[str, Any], kind: type[SamplingParams] | type[ReplyStats]
) -> dict[str, Any]:
    names = {entry.name for entry in fields(kind)}
    return {name: value for name, value in values.items() if name in names}
