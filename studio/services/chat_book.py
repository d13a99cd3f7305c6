"""All chats in memory, and the signals that tell of their changes: what the services of chats share.

GUI thread, no Qt. Signals are emitted on the loop's thread, for every event; views coalesce.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from studio.models.chat import Conversation, Message
from studio.models.signal import Signal
from studio.models.undo import Undo

_DAY_S = 24 * 3600.0
"""So far ahead another zone, or a clock that was put right, may be."""
_ALL_TIME_S = 1e12


class ChatBook:
    """`chats` are all that are not deleted, archived ones too, the last used first."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.is_closing = False
        self.chats: list[Conversation] = []
        self.deleted: list[Conversation] = []
        """Those that can still be brought back, the last deleted first."""
        self.chat_added: Signal[[Conversation]] = Signal()
        self.chat_removed: Signal[[Conversation]] = Signal()
        self.chat_changed: Signal[[Conversation]] = Signal()
        """Anything about it but its messages: title, place, marks, settings, queue, how its running reply stands."""
        self.path_changed: Signal[[Conversation]] = Signal()
        """`messages` is another version of the chat now: more has changed than a message added at its end."""
        self.message_added: Signal[[Message]] = Signal()
        """To the end of its chat's `messages`."""
        self.message_changed: Signal[[Message]] = Signal()
        """Text, status, note, progress or figures."""
        self.deleted_changed: Signal[[]] = Signal()
        self.undo_offered: Signal[[Undo]] = Signal()
        """Something was done that can be taken back."""
        self._changing: set[int] = set()
        """Ids of chats whose messages are being changed."""

    def find(self, chat_id: int) -> Conversation | None:
        """The chat of this id that is not deleted."""
        return next((chat for chat in self.chats if chat.chat_id == chat_id), None)

    def add(self, chat: Conversation) -> None:
        """Add a chat to the top."""
        self.chats.insert(0, chat)
        self.chat_added.emit(chat)

    def used_s(self, chat: Conversation) -> float:
        """When a chat was last used, for the order. What is still to come says a clock that was wrong: long ago."""
        is_to_come = chat.updated_s > self._clock() + _DAY_S
        return chat.updated_s - _ALL_TIME_S if is_to_come else chat.updated_s

    def put_back(self, chats: Iterable[Conversation]) -> None:
        """Add chats where they were by the time of their last use."""
        coming = sorted(chats, key=self.used_s)
        told, merged = tuple(coming), []
        for chat in self.chats:
            while coming and self.used_s(coming[-1]) >= self.used_s(chat):
                merged.append(coming.pop())
            merged.append(chat)
        self.chats[:] = (*merged, *reversed(coming))
        for chat in told:
            self.chat_added.emit(chat)

    def remove(self, chats: Iterable[Conversation]) -> None:
        """Take chats out; those that are not there are fine."""
        named = set(chats)
        gone = [chat for chat in self.chats if chat in named]
        self.chats[:] = [chat for chat in self.chats if chat not in named]
        for chat in gone:
            self.chat_removed.emit(chat)

    def to_top(self, chat: Conversation) -> None:
        """It has just been used; the caller tells that it changed."""
        self.chats.remove(chat)
        self.chats.insert(0, chat)

    def is_changing(self, chat: Conversation) -> bool:
        """Whether somebody changes the chat's messages right now, or nobody may any more."""
        return self.is_closing or chat.chat_id in self._changing

    @contextmanager
    def changing(self, chat: Conversation) -> Iterator[bool]:
        """Nobody else changes the messages of the chat meanwhile; False if somebody does."""
        if self.is_changing(chat):
            yield False
            return
        self._changing.add(chat.chat_id)
        try:
            yield True
        finally:
            self._changing.discard(chat.chat_id)

    def tell_path(self, chat: Conversation) -> None:
        """The chat shows other messages now."""
        self.path_changed.emit(chat)
        self.chat_changed.emit(chat)
