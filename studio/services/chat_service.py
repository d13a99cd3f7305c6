"""The chats: turns prompts into requests and folds the engine's events into messages. GUI thread, asyncio, no Qt.

Replies run in tasks of their own, so that a chat goes on while another one is on screen. The prompt is on disk before
the engine hears of it, and a growing reply is saved at least once a second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from engine.api import Failed, Request
from engine.client import EngineClient
from engine.errors import EngineError, Suspended
from engine.runs import Suspend
from studio.models.chat import (
    NEW_CHAT_TITLE,
    Conversation,
    Message,
    MessageStatus,
    Role,
    reply_request_id,
)
from studio.models.errors import StoreError
from studio.models.signal import Signal
from studio.services.chat_prompt import request_for, title_for
from studio.services.chat_saver import SAVE_INTERVAL_S, ChatSaver
from studio.services.history_rows import valid_text
from studio.services.history_store import HistoryStore
from studio.services.notice_service import NoticeService
from studio.services.reply_fold import ReplyFold, checked_comeback

_log = logging.getLogger(__name__)


class ChatService:
    """`chats` are all chats, the last used first. Signals are emitted on the loop's thread, for every event."""

    def __init__(
        self,
        client: EngineClient,
        store: HistoryStore,
        notices: NoticeService,
        *,
        clock: Callable[[], float] = time.time,
        save_interval_s: float = SAVE_INTERVAL_S,
    ) -> None:
        self.chats: list[Conversation] = []
        self.chat_added: Signal[[Conversation]] = Signal()
        self.chat_removed: Signal[[Conversation]] = Signal()
        self.chat_changed: Signal[[Conversation]] = Signal()
        """Title, unread mark, place in `chats`, or the status of its running reply."""
        self.message_added: Signal[[Message]] = Signal()
        self.message_changed: Signal[[Message]] = Signal()
        """Text, status, note, progress or figures; the view coalesces."""
        self._client = client
        self._store = store
        self._notices = notices
        self._clock = clock
        self._saver = ChatSaver(store, notices, save_interval_s)
        self._sending: set[int] = set()
        self._replies: dict[int, asyncio.Task[None]] = {}
        """The running reply of each chat that has one, by chat id."""
        self._ending: set[asyncio.Task[None]] = set()
        """Replies that were stopped and still have to leave their streams."""
        self._visible: set[int] = set()
        self._checking: asyncio.Task[None] | None = None
        self._is_closing = False

    async def start(self) -> None:
        """Open the store, read the list of chats, and let the file be checked meanwhile.

        Raises StoreBusy if another Layby has it, StoreError if it cannot be used.
        """
        self._store.damaged.connect(self._notices.report)
        await self._store.open()
        self.chats = await self._store.load_chats()
        self._checking = asyncio.get_running_loop().create_task(self._check_store())

    async def new_chat(self) -> Conversation:
        """Add an empty chat at the top of the list. Raises StoreError if it cannot be stored."""
        now_s = self._clock()
        chat = Conversation(
            chat_id=0, title=NEW_CHAT_TITLE, created_s=now_s, updated_s=now_s, is_loaded=True
        )
        chat.chat_id = await self._store.add_chat(chat)
        self.chats.insert(0, chat)
        self.chat_added.emit(chat)
        return chat

    async def open_chat(self, chat_id: int) -> Conversation:
        """Read the messages of a chat (once) and take its unread mark away.

        Raises KeyError for an unknown id, StoreError if the messages cannot be read.
        """
        chat = next((chat for chat in self.chats if chat.chat_id == chat_id), None)
        if chat is None:
            raise KeyError(chat_id)
        await self._load_messages(chat)
        if chat.has_unread:
            chat.has_unread = False
            self._saver.save_chat(chat)
            self.chat_changed.emit(chat)
        return chat

    async def send(self, chat: Conversation, text: str) -> bool:
        """Store the prompt, then ask the engine; True once asked.

        False, and the composer keeps its text, if the text is blank, the chat is still answering, or the prompt could
        not be stored (which is a notice as well).
        """
        if (
            self._is_closing
            or not text.strip()
            or chat.chat_id in self._sending
            or chat.running_message
        ):
            return False
        self._sending.add(chat.chat_id)
        try:
            await self._load_messages(chat)
            reply = await self._add_turn(chat, valid_text(text))
        except StoreError as error:
            self._notices.report(error)
            return False
        finally:
            self._sending.discard(chat.chat_id)
        if self._is_closing:
            return False
        if chat not in self.chats:
            await self._store.delete_chat(chat.chat_id)
            return False
        self._start_reply(chat, reply)
        return True

    async def go_on(self, chat: Conversation, message_id: int) -> bool:
        """Go on with an interrupted reply whose state the engine has on disk; True also if that is under way.

        False if it is not the chat's last message, or was not interrupted. Raises StoreError if it cannot be read.
        """
        await self._load_messages(chat)
        reply = chat.messages[-1] if chat.messages else None
        if reply is None or reply.message_id != message_id or self._is_closing:
            return False
        if reply.status is MessageStatus.INTERRUPTED and chat.chat_id not in self._sending:
            reply.status, reply.note = MessageStatus.QUEUED, ""
            self._start_task(chat, reply, resumes=True)
            self.message_changed.emit(reply)
            self.chat_changed.emit(chat)
        return reply.status.is_alive

    def stop(self, chat: Conversation) -> None:
        """End the running reply, keeping its text; nothing if none is running."""
        self._end_reply(chat, MessageStatus.STOPPED)

    async def rename(self, chat: Conversation, title: str) -> None:
        """Give a chat a title; a blank one is ignored."""
        title = " ".join(title.split())
        if title and title != chat.title:
            chat.title = title
            self._saver.save_chat(chat)
            self.chat_changed.emit(chat)

    async def delete(self, chat: Conversation) -> None:
        """Stop the chat's reply and delete the chat with its messages. Raises StoreError if that fails."""
        if chat not in self.chats:
            return
        self.stop(chat)
        self._saver.forget(chat)
        self.chats.remove(chat)
        self.chat_removed.emit(chat)
        await self._store.delete_chat(chat.chat_id)

    def set_draft(self, chat: Conversation, text: str) -> None:
        """Keep unsent text; it is saved with the next tick."""
        if text != chat.draft and chat in self.chats:
            chat.draft = text
            self._saver.save_chat(chat)

    def set_visible(self, chat: Conversation, *, is_visible: bool) -> None:
        """Say which chats are on screen: a reply that ends in another one marks that chat unread."""
        if is_visible:
            self._visible.add(chat.chat_id)
        else:
            self._visible.discard(chat.chat_id)

    async def close(self) -> None:
        """End all replies (as INTERRUPTED, keeping their text), save everything and close the store."""
        self._is_closing = True
        self._store.end_check()
        for chat in tuple(self.chats):
            self._end_reply(chat, MessageStatus.INTERRUPTED)
        if running := {*self._ending, *self._replies.values()}:
            await asyncio.wait(running)
        try:
            await self._saver.close()
            if self._checking is not None:
                await self._checking
        finally:
            await self._store.close()

    async def _check_store(self) -> None:
        try:
            await self._store.check()
        except StoreError as error:
            self._notices.report(error)

    async def _load_messages(self, chat: Conversation) -> None:
        if chat.is_loaded:
            return
        messages = await self._store.load_messages(chat.chat_id)
        if not chat.is_loaded:  # nobody else was faster meanwhile
            chat.messages = messages
            chat.is_loaded = True

    async def _add_turn(self, chat: Conversation, text: str) -> Message:
        """Store prompt and empty reply in one commit; the chat changes only if that succeeds."""
        now_s = self._clock()
        title = (
            title_for(text) if not chat.messages and chat.title == NEW_CHAT_TITLE else chat.title
        )
        prompt = Message(0, chat.chat_id, Role.USER, text, now_s)
        reply = Message(0, chat.chat_id, Role.ASSISTANT, "", now_s, status=MessageStatus.QUEUED)
        changed = replace(chat, title=title, updated_s=now_s, draft="")
        prompt.message_id, reply.message_id = await self._store.add_messages(
            changed, (prompt, reply)
        )
        chat.title, chat.updated_s, chat.draft = changed.title, changed.updated_s, changed.draft
        chat.messages += [prompt, reply]
        return reply

    def _start_reply(self, chat: Conversation, reply: Message) -> None:
        self.chats.remove(chat)
        self.chats.insert(0, chat)
        for message in chat.messages[-2:]:
            self.message_added.emit(message)
        self.chat_changed.emit(chat)
        self._start_task(chat, reply)

    def _start_task(self, chat: Conversation, reply: Message, *, resumes: bool = False) -> None:
        work = self._run_reply(chat, reply, request_for(chat, reply, resumes=resumes))
        task = asyncio.get_running_loop().create_task(work)
        self._replies[chat.chat_id] = task
        task.add_done_callback(partial(self._on_reply_done, chat, reply))

    async def _run_reply(self, chat: Conversation, reply: Message, request: Request) -> None:
        fold = ReplyFold(reply, asked_s=reply.created_s, resumes=request.resumes)
        async with self._client.stream(request) as events:
            async for heard in events:
                before, event = reply.status, checked_comeback(heard, reply)
                fold.apply(event, self._clock())
                self._saver.save_message(chat, reply)
                self.message_changed.emit(reply)
                if reply.status is not before:
                    self._on_status_changed(chat, reply)
                if isinstance(event, Failed):
                    if not isinstance(event.error, Suspended):
                        self._notices.report(event.error)
                    return

    def _on_status_changed(self, chat: Conversation, reply: Message) -> None:
        if not reply.status.is_alive and chat.chat_id not in self._visible:
            chat.has_unread = True
            self._saver.save_chat(chat)
        self.chat_changed.emit(chat)

    def _end_reply(self, chat: Conversation, status: MessageStatus) -> None:
        """The reply has ended for everybody at once; its task leaves the engine's stream on its own."""
        reply, task = chat.running_message, self._replies.get(chat.chat_id)
        if reply is None or task is None:
            return
        del self._replies[chat.chat_id]
        self._ending.add(task)
        if status is MessageStatus.INTERRUPTED:  # before the abort that leaving the stream is
            self._client.control(Suspend(request_id=reply_request_id(reply)))
        task.cancel()
        reply.status = status
        reply.park = None
        self._saver.save_message(chat, reply)
        self.message_changed.emit(reply)
        self.chat_changed.emit(chat)

    def _on_reply_done(self, chat: Conversation, reply: Message, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        if self._replies.get(chat.chat_id) is task:
            del self._replies[chat.chat_id]
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, EngineError):
            self._notices.report(error)
        else:
            _log.error("the reply %d failed", reply.message_id, exc_info=error)
        if reply.status.is_alive:
            reply.status = MessageStatus.FAILED
            reply.park = None
            reply.note = str(error)
            self._saver.save_message(chat, reply)
            self.message_changed.emit(reply)
            self.chat_changed.emit(chat)
