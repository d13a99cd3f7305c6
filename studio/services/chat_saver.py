"""Writes changed chats and messages to the store: one timer for all of them, running only while something is unsaved.

Runs on the loop's thread. What could not be written stays marked and is tried again with the next tick, as is whatever
else the history did not take and somebody promised to try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import suppress

from studio.models.chat import Conversation, Message
from studio.models.errors import StoreError
from studio.services.history_store import HistoryStore
from studio.services.store_troubles import StoreTroubles

Work = Callable[[], Awaitable[bool]]
"""What the history did not take. It answers whether nothing of it is left to do, or raises StoreError once more."""
SAVE_INTERVAL_S = 0.5
"""Half of the second that may be lost at most, so that the write itself has time as well."""


class ChatSaver:
    """`save_*` marks what has changed; the ticks write it."""

    def __init__(self, store: HistoryStore, troubles: StoreTroubles, interval_s: float) -> None:
        self._store = store
        self._troubles = troubles
        self._interval_s = interval_s
        self._chats: dict[int, Conversation] = {}
        self._messages: dict[int, Message] = {}
        self._forgotten: set[int] = set()
        """Ids of chats that are gone for good."""
        self._gone_messages: set[int] = set()
        self._owed: dict[Hashable, Work] = {}
        self._hurry = asyncio.Event()
        self._is_closing = False
        self._ticking: asyncio.Task[None] | None = None

    def save_chat(self, chat: Conversation) -> None:
        """Write the chat (not its messages) with the next tick."""
        if chat.chat_id not in self._forgotten:
            self._chats[chat.chat_id] = chat
            self._tick()

    def save_message(self, chat: Conversation, message: Message) -> None:
        """Write the chat and this message with the next tick, or now if the message has ended."""
        if chat.chat_id in self._forgotten or message.message_id in self._gone_messages:
            return
        self._messages[message.message_id] = message
        if not message.status.is_alive:
            self._hurry.set()
        self.save_chat(chat)

    def forget(self, chat: Conversation) -> None:
        """Write nothing more of this chat: it is being deleted."""
        self._forgotten.add(chat.chat_id)
        self._drop_forgotten()

    def forget_message(self, message: Message) -> None:
        """Write nothing more of this message: it is being deleted."""
        self._gone_messages.add(message.message_id)
        self._messages.pop(message.message_id, None)

    def remember_message(self, message: Message) -> None:
        """The message is there again."""
        self._gone_messages.discard(message.message_id)

    def owe(self, key: Hashable, work: Work, error: StoreError) -> None:
        """Do again with each tick what raised this error, until it answers True; then the error's notice goes."""
        self._troubles.tell(key, error)
        self._owed[key] = work
        self._tick()

    def refuse(self, error: StoreError) -> None:
        """Show why messages were not stored; the notice goes when others are (`took`)."""
        self._troubles.refuse(error)

    def took(self) -> None:
        """New messages were stored."""
        self._troubles.took()

    async def flush(self) -> None:
        """Write everything that is marked; a failure becomes one notice, withdrawn when writing works again."""
        chats, self._chats = self._chats, {}
        messages, self._messages = self._messages, {}
        if not chats and not messages:
            return
        try:
            await self._store.save(list(chats.values()), list(messages.values()))
        except (
            asyncio.CancelledError
        ):  # who asked for it does not wait; it is to be written all the same
            self._mark_again(chats, messages)
            self._tick()
            raise
        except StoreError as error:
            self._mark_again(chats, messages)
            if not self._troubles.is_told(self):
                self._troubles.tell(self, error)
            return
        self._troubles.over(self)

    async def close(self) -> None:
        """Stop ticking and write what is left."""
        self._is_closing = True
        self._hurry.set()
        if self._ticking is not None:
            await self._ticking
        await self.flush()

    def _mark_again(self, chats: dict[int, Conversation], messages: dict[int, Message]) -> None:
        self._chats = {**chats, **self._chats}
        self._messages = {**messages, **self._messages}
        self._drop_forgotten()

    def _drop_forgotten(self) -> None:
        gone = self._forgotten
        self._chats = {key: chat for key, chat in self._chats.items() if key not in gone}
        self._messages = {
            key: item
            for key, item in self._messages.items()
            if item.chat_id not in gone and key not in self._gone_messages
        }

    def _tick(self) -> None:
        if self._ticking is None or self._ticking.done():
            self._ticking = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while (self._chats or self._messages or self._owed) and not self._is_closing:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), self._interval_s)
            self._hurry.clear()
            await self.flush()
            await self._pay()

    async def _pay(self) -> None:
        for key, work in tuple(self._owed.items()):
            with suppress(StoreError):
                if await work() and self._owed.get(key) is work:
                    del self._owed[key]
                    self._troubles.over(key)
