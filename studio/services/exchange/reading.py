"""What was read of a file of chats, and the checks that every format shares. Pure; any thread, no Qt.

Files come from anywhere: whatever is no chat is left out and counted, and nothing that is read can hang the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.models.one_line import one_line

_MOST_TITLE_CHARS = 500
_LATEST_S = 1e11
"""What is later was given in other units."""


class BrokenEntry(ValueError):
    """A chat or message of a file that is none; it is left out and counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadChat:
    """One chat of a file. The ids of its messages are the file's own, counted from 1."""

    chat: Conversation
    """Without messages and with the id 0."""
    messages: tuple[Message, ...] = ()
    """All versions, parents first."""
    leaf_id: int | None = None
    """The end of the version that was shown."""
    folder: tuple[str, ...] = ()
    """The names of the folders that it lay in, from the top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All chats of a file, and how many entries of it were none, or had not a word in them."""

    chats: tuple[ReadChat, ...] = ()
    num_broken: int = 0
    num_empty: int = 0

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            chats=(*self.chats, *other.chats),
            num_broken=self.num_broken + other.num_broken,
            num_empty=self.num_empty + other.num_empty,
        )


def text_of(entry: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """A text of an entry. Raises BrokenEntry where there is none and no default."""
    value = entry.get(name, default)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise BrokenEntry(name)
    return value


def time_of(entry: Mapping[str, Any], name: str, default: float) -> float:
    """A Unix time of an entry; the default where it has none that makes sense."""
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return float(value) if math.isfinite(value) and 0 <= value < _LATEST_S else default


def title_of(text: str) -> str:
    """On one line, and not endless."""
    return one_line(text)[:_MOST_TITLE_CHARS]


def parents_first(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages in an order in which each comes after its parent, numbered anew from 1.

    A parent that is lost, or that would close a ring, is taken away: the message begins the chat then.
    """
    by_id = {message.message_id: message for message in messages}
    ordered: dict[int, Message] = {}
    for message in by_id.values():
        line: dict[int, Message] = {}
        now: Message | None = message
        while now is not None and now.message_id not in ordered and now.message_id not in line:
            line[now.message_id] = now
            now = by_id.get(now.parent_id) if now.parent_id is not None else None
        if now is None or now.message_id in line:  # the line begins the chat, or closes a ring
            next(reversed(line.values()), message).parent_id = None
        ordered.update(reversed(line.items()))
    return renumbered(tuple(ordered.values()))


def renumbered(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same messages with the ids 1, 2, 3 …; parents must come first."""
    ids: dict[int, int] = {}
    for number, message in enumerate(messages, start=1):
        ids[message.message_id] = number
        message.message_id = number
        message.parent_id = ids.get(message.parent_id) if message.parent_id is not None else None
    return tuple(messages)


def ended(status: MessageStatus, role: Role) -> MessageStatus:
    """How a message stands that nobody is writing any more."""
    if role is not Role.ASSISTANT:
        return MessageStatus.DONE
    return MessageStatus.INTERRUPTED if status.is_alive else status
