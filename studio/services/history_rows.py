"""Chats and messages as rows of the history, and back. Pure functions.

Rows are made on the loop's thread, where the chats live; the store's worker only ever sees the rows.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from engine.api import SamplingParams
from engine.errors import InvalidRequest
from studio.models.chat import Conversation, Message, MessageStatus, ReplyStats, Role

_log = logging.getLogger(__name__)

Row = tuple[object, ...]

CHAT_COLUMNS = (
    "chat_id, title, created_s, updated_s, system_prompt, sampling, max_tokens, draft, has_unread"
)
LAST_STATUS = "(SELECT status FROM messages WHERE messages.chat_id = chats.chat_id ORDER BY message_id DESC LIMIT 1)"
"""The status of a chat's last message, NULL if it has none; one look into an index."""
MESSAGE_COLUMNS = "message_id, chat_id, role, text, created_s, status, note, stats"


def valid_text(text: str) -> str:
    """`text` with halves of surrogate pairs, which no file and no tokenizer takes, as question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def chat_row(chat: Conversation) -> Row:
    """The values of CHAT_COLUMNS."""
    return (
        chat.chat_id,
        valid_text(chat.title),
        chat.created_s,
        chat.updated_s,
        valid_text(chat.system_prompt),
        _changed_as_json(chat.sampling, SamplingParams()),
        chat.max_tokens,
        valid_text(chat.draft),
        int(chat.has_unread),
    )


def chat_from_row(row: tuple[Any, ...]) -> Conversation:
    """The chat of CHAT_COLUMNS and LAST_STATUS; its messages are not loaded."""
    *own, last_status = row
    chat_id, title, created_s, updated_s, system_prompt, sampling, max_tokens, draft, has_unread = (
        own
    )
    return Conversation(
        chat_id=chat_id,
        title=title,
        created_s=created_s,
        updated_s=updated_s,
        system_prompt=system_prompt,
        sampling=_sampling(sampling, chat_id),
        max_tokens=max_tokens,
        draft=draft,
        has_unread=bool(has_unread),
        stored_status=MessageStatus(last_status) if last_status is not None else None,
    )


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
    )


def message_from_row(row: tuple[Any, ...]) -> Message:
    """The message of a row."""
    message_id, chat_id, role, text, created_s, status, note, stats = row
    return Message(
        message_id=message_id,
        chat_id=chat_id,
        role=Role(role),
        text=text,
        created_s=created_s,
        status=MessageStatus(status),
        note=note,
        stats=_stats(stats, message_id),
    )


def _changed_as_json(
    value: SamplingParams | ReplyStats, default: SamplingParams | ReplyStats
) -> str:
    """Only what differs from the default, so that rows stay small and later versions may add fields."""
    plain = asdict(default)
    return json.dumps({name: new for name, new in asdict(value).items() if new != plain[name]})


def _sampling(text: str, chat_id: int) -> SamplingParams:
    try:
        values = _known(json.loads(text), SamplingParams)
        for name in ("logit_bias", "dry_sequence_breakers"):
            if name in values:
                values[name] = tuple(
                    tuple(item) if isinstance(item, list) else item for item in values[name]
                )
        return SamplingParams(**values)
    except (ValueError, TypeError, InvalidRequest) as error:
        _log.warning(
            "chat %d: its sampling settings are not readable (%s); the defaults are used",
            chat_id,
            error,
        )
        return SamplingParams()


def _stats(text: str, message_id: int) -> ReplyStats:
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
