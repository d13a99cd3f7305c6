"""What has just been done and can be taken back. Plain state; no Qt."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from typing import Any

from studio.models.chat import Conversation


class UndoKind(Enum):
    """What was done; the words are the window's."""

    CHATS_DELETED = "chats_deleted"
    CHATS_ARCHIVED = "chats_archived"
    CHATS_MOVED = "chats_moved"
    FOLDER_DELETED = "folder_deleted"
    MESSAGE_DELETED = "message_deleted"
    PRESET_DELETED = "preset_deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """One thing done. `run` takes it back; it may be started once."""

    kind: UndoKind
    run: Callable[[], Coroutine[Any, Any, None]]
    number: int = 1
    """Of chats."""
    name: str = ""
    """Of the chat, folder or preset, where it was one."""
    chat: Conversation | None = None
    """The one that was deleted; None for several, and for anything else."""
