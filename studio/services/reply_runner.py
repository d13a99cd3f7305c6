"""Runs the replies: asks the engine and folds its events into messages, each in a task of its own.

GUI thread, asyncio, no Qt. A chat goes on while another one is on screen; a growing reply is saved at least once a
second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from engine.api import Failed, Request
from engine.client import EngineClient
from engine.errors import EngineError, Suspended
from engine.runs import Suspend
from studio.models.chat import Conversation, Message, MessageStatus, reply_request_id
from studio.models.signal import Signal
from studio.services.chat_book import ChatBook
from studio.services.chat_prompt import request_for
from studio.services.chat_records import ChatRecords
from studio.services.notice_service import NoticeService
from studio.services.reply_fold import ReplyFold, checked_comeback

_log = logging.getLogger(__name__)


class ReplyRunner:
    """At most one reply of a chat runs: the last of its messages."""

    def __init__(
        self,
        client: EngineClient,
        book: ChatBook,
        records: ChatRecords,
        *,
        notices: NoticeService,
        clock: Callable[[], float],
    ) -> None:
        self.ended: Signal[[Conversation, Message]] = Signal()
        """A reply has ended by itself: it was not stopped."""
        self._client = client
        self._book = book
        self._records = records
        self._notices = notices
        self._clock = clock
        self._replies: dict[int, asyncio.Task[None]] = {}
        """The running reply of each chat that has one, by chat id."""
        self._ending: set[asyncio.Task[None]] = set()
        """Replies that were stopped and still have to leave their streams."""
        self._visible: set[int] = set()

    def start(self, chat: Conversation, reply: Message, *, resumes: bool = False) -> None:
        """Ask for `reply`, the last message of the chat, or for what follows the text that it already has.

        `resumes`: with the state that the engine has on disk.
        """
        work = self._run(chat, reply, request_for(chat, reply, resumes=resumes))
        task = asyncio.get_running_loop().create_task(work)
        self._replies[chat.chat_id] = task
        task.add_done_callback(partial(self._on_done, chat, reply))

    def stop(self, chat: Conversation) -> None:
        """End the running reply, keeping its text; nothing if none is running."""
        self._end(chat, MessageStatus.STOPPED)

    def set_visible(self, chat: Conversation, *, is_visible: bool) -> None:
        """Say which chats are on screen: a reply that ends in another one marks that chat unread."""
        if is_visible:
            self._visible.add(chat.chat_id)
        else:
            self._visible.discard(chat.chat_id)

    async def close(self) -> None:
        """End all replies as INTERRUPTED, keeping their text."""
        for chat in tuple(self._book.chats):
            self._end(chat, MessageStatus.INTERRUPTED)
        if running := {*self._ending, *self._replies.values()}:
            await asyncio.wait(running)

    async def _run(self, chat: Conversation, reply: Message, request: Request) -> None:
        fold = ReplyFold(reply, asked_s=self._clock(), resumes=request.resumes)
        async with self._client.stream(request) as events:
            async for heard in events:
                before, event = reply.status, checked_comeback(heard, reply)
                fold.apply(event, self._clock())
                self._records.save_message(chat, reply)
                self._book.message_changed.emit(reply)
                if reply.status is not before:
                    self._on_status_changed(chat, reply)
                if isinstance(event, Failed):
                    if not isinstance(event.error, Suspended):
                        self._notices.report(event.error)
                    return

    def _on_status_changed(self, chat: Conversation, reply: Message) -> None:
        if not reply.status.is_alive and chat.chat_id not in self._visible:
            chat.has_unread = True
            self._records.save_chat(chat)
        self._book.chat_changed.emit(chat)

    def _end(self, chat: Conversation, status: MessageStatus) -> None:
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
        self._tell_ended(chat, reply)

    def _on_done(self, chat: Conversation, reply: Message, task: asyncio.Task[None]) -> None:
        self._ending.discard(task)
        is_current = self._replies.get(chat.chat_id) is task
        if is_current:
            del self._replies[chat.chat_id]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            if isinstance(error, EngineError):
                self._notices.report(error)
            else:
                _log.error("the reply %d failed", reply.message_id, exc_info=error)
            if reply.status.is_alive:
                reply.status = MessageStatus.FAILED
                reply.note = str(error)
                self._tell_ended(chat, reply)
        if is_current:
            self.ended.emit(chat, reply)

    def _tell_ended(self, chat: Conversation, reply: Message) -> None:
        reply.park = None
        self._records.save_message(chat, reply)
        self._book.message_changed.emit(reply)
        self._book.chat_changed.emit(chat)
