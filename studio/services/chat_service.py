"""The chats: turns prompts into requests and folds the engine's events into messages. GUI thread, asyncio, no Qt.

Replies run in tasks of their own, so that a chat goes on while another one is on screen. The prompt is on disk before the
engine hears of it, and a growing reply is saved at least once a second.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.client import EngineClient
from studio.models.chat import Conversation, Message
from studio.models.signal import Signal
from studio.services.history_store import HistoryStore
from studio.services.notice_service import NoticeService


class ChatService:
    """`chats` are all chats, the last used first. Signals are emitted on the loop's thread, for every event."""

    def __init__(
        self,
        client: EngineClient,
        store: HistoryStore,
        notices: NoticeService,
        *,
        clock: Callable[[], float],
    ) -> None:
        self.chats: list[Conversation] = []
        self.chat_added: Signal[[Conversation]] = Signal()
        self.chat_removed: Signal[[Conversation]] = Signal()
        self.chat_changed: Signal[[Conversation]] = Signal()
        """Title, draft, unread mark, place in `chats`, or the status of its running reply."""
        self.message_added: Signal[[Message]] = Signal()
        self.message_changed: Signal[[Message]] = Signal()
        """Text, status, note, progress or figures; the view coalesces."""
        raise NotImplementedError

    async def start(self) -> None:
        """Open the store and read the list of chats. Raises StoreBusy if another Layby has it."""
        raise NotImplementedError

    async def new_chat(self) -> Conversation:
        """Add an empty chat at the top of the list."""
        raise NotImplementedError

    async def open_chat(self, chat_id: int) -> Conversation:
        """Read the messages of a chat (once) and take its unread mark away. Raises KeyError for an unknown id."""
        raise NotImplementedError

    async def send(self, chat: Conversation, text: str) -> bool:
        """Store the prompt, then ask the engine; True once asked. False (the composer keeps its text) if the chat is
        still answering, the text is blank, or the prompt could not be stored (which is also a notice)."""
        raise NotImplementedError

    def stop(self, chat: Conversation) -> None:
        """End the running reply, keeping its text; nothing if none is running."""
        raise NotImplementedError

    async def rename(self, chat: Conversation, title: str) -> None:
        """Give a chat a title; a blank one is ignored."""
        raise NotImplementedError

    async def delete(self, chat: Conversation) -> None:
        """Stop the chat's reply and delete the chat with its messages."""
        raise NotImplementedError

    def set_draft(self, chat: Conversation, text: str) -> None:
        """Keep unsent text; it is saved with the next tick."""
        raise NotImplementedError

    def set_visible(self, chat: Conversation, *, is_visible: bool) -> None:
        """Say which chats are on screen: a reply that ends in another one marks that chat unread."""
        raise NotImplementedError

    async def close(self) -> None:
        """Stop all replies, save everything (replies still alive as INTERRUPTED) and close the store."""
        raise NotImplementedError
