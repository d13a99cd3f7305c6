"""Runs the replies: asks the engine and folds its events into messages, each in a task of its own.

GUI thread, asyncio, no Qt. A chat goes on while another one is on screen; a growing reply is saved at least once a
second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from engine.api import Failed, Finished, Request, RequestEvent
from engine.client import EngineClient
from engine.errors import ContextLengthExceeded, EngineError, Suspended
from engine.runs import Suspend
from studio.models.chat import Conversation, Message, MessageStatus, Role, reply_request_id
from studio.models.errors import StudioError
from studio.models.length_limit import reached_limit
from studio.models.signal import Signal
from studio.services.chat_book import ChatBook
from studio.services.chat_prompt import request_for
from studio.services.chat_records import ChatRecords
from studio.services.notice_service import NoticeService
from studio.services.reply_fold import ReplyFold, checked_comeback, end_park
from studio.services.tools.tool_desk import ToolDesk
from studio.services.tools.tool_room import cause_of

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Writing:
    """A reply that is being written: what was asked, and what folds the answer into it."""

    chat: Conversation
    reply: Message
    request: Request
    fold: ReplyFold


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
        desk: ToolDesk | None = None,
    ) -> None:
        """Without a desk no reply is offered tools."""
        self.ended: Signal[[Conversation, Message]] = Signal()
        """A reply has ended by itself: it was not stopped."""
        self._client = client
        self._book = book
        self._records = records
        self._notices = notices
        self._clock = clock
        self._desk = desk
        if desk is not None:
            desk.unattended.connect(self.go_on_after_calls)
        self._replies: dict[int, asyncio.Task[Message]] = {}
        """The running reply of each chat that has one, by chat id."""
        self._ending: set[asyncio.Task[Message]] = set()
        """Replies that were stopped and still have to leave their streams."""
        self._visible: set[int] = set()

    def start(self, chat: Conversation, reply: Message, *, resumes: bool = False) -> None:
        """Ask for `reply`, the last message of the chat, or for what follows the text that it already has.

        `resumes`: with the state that the engine has on disk.
        """
        request = (
            request_for(chat, reply, resumes=resumes) if not self._offers_tools(chat) else None
        )
        self._work_on(chat, self._run(chat, reply, request, resumes=resumes))

    def go_on_after_calls(self, chat: Conversation, reply: Message) -> None:
        """Carry out what is open of the calls of the last reply, and ask what the model says to it."""
        if self._desk is not None and chat.chat_id not in self._replies:
            self._work_on(chat, self._after_calls(chat, reply))

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

    def _offers_tools(self, chat: Conversation) -> bool:
        return self._desk is not None and bool(chat.tools.servers)

    def _work_on(self, chat: Conversation, work: Coroutine[Any, Any, Message]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._replies[chat.chat_id] = task
        task.add_done_callback(partial(self._on_done, chat))

    async def _run(
        self, chat: Conversation, reply: Message, request: Request | None, *, resumes: bool = False
    ) -> Message:
        """Write a reply, and those that follow its calls of tools; the last of them. No request: it is made here."""
        if request is None:
            toolbox = await self._desk.toolbox(chat) if self._desk is not None else None
            request = request_for(chat, reply, resumes=resumes, toolbox=toolbox)
        await self._write(chat, reply, request)
        if reply.status is not MessageStatus.TOOLS or self._desk is None:
            return reply
        return await self._after_calls(chat, reply)

    async def _after_calls(self, chat: Conversation, reply: Message) -> Message:
        assert self._desk is not None
        await self._desk.settle(chat, reply)
        following = Message(0, chat.chat_id, Role.ASSISTANT, "", self._clock())
        following.status, following.parent_id = MessageStatus.QUEUED, reply.message_id
        await self._records.add_messages(replace(chat, updated_s=self._clock()), [following])
        reply.status = MessageStatus.DONE
        self._records.save_message(chat, reply)
        chat.append(following)
        self._book.message_changed.emit(reply)
        self._book.message_added.emit(following)
        self._book.chat_changed.emit(chat)
        return await self._run(chat, following, None)

    async def _write(self, chat: Conversation, reply: Message, request: Request) -> None:
        """Have `reply` written, as far as it gets. Its text comes without a task between: many times a second."""
        fold = ReplyFold(reply, asked_s=self._clock(), resumes=request.resumes)
        writing = _Writing(chat, reply, request, fold)
        ended: asyncio.Future[ContextLengthExceeded | None] = (
            asyncio.get_running_loop().create_future()
        )

        def hear(event: RequestEvent) -> None:
            if ended.done():  # stopped: what was under way does not count any more
                return
            try:
                is_over = self._take(writing, event)
            except Exception as error:  # noqa: BLE001 - one reply's trouble is its own: others hear on
                ended.set_exception(error)
                return
            if is_over:
                ended.set_result(_too_long(event))

        with self._client.hearing(request, hear):
            too_long = await ended
        if too_long is not None:
            prompt, chat_id = request.prompt, chat.chat_id
            self._notices.report(await cause_of(too_long, prompt, self._client, chat_id=chat_id))

    def _take(self, writing: _Writing, heard: RequestEvent) -> bool:
        """Fold one event into the reply and tell everybody; whether nothing more is to come."""
        chat, reply = writing.chat, writing.reply
        before, event = reply.status, checked_comeback(heard, reply)
        writing.fold.apply(event, self._clock())
        if isinstance(event, Finished) and reply.status is MessageStatus.LENGTH:
            most = writing.request.max_tokens
            limit = reached_limit(event.usage, most, self._client.snapshot())
            reply.note = limit.value if limit is not None else ""
        self._records.save_message(chat, reply)
        self._book.message_changed.emit(reply)
        if reply.status is not before:
            self._on_status_changed(chat, reply)
        if isinstance(event, Failed) and not isinstance(
            event.error, Suspended | ContextLengthExceeded
        ):
            self._notices.report(event.error)
        if isinstance(event, Finished) and reply.status is MessageStatus.TOOLS and self._desk:
            self._desk.begin(chat, reply)  # at once: nobody is to see calls that are not known yet
        return isinstance(event, Finished | Failed)

    def _on_status_changed(self, chat: Conversation, reply: Message) -> None:
        if not reply.status.is_alive and chat.chat_id not in self._visible:
            chat.has_unread = True
            self._records.save_chat(chat)
        self._book.chat_changed.emit(chat)

    def _end(self, chat: Conversation, status: MessageStatus) -> None:
        """The reply has ended for everybody at once; its task leaves the engine's stream on its own.

        One that waits for its tools is stopped too, but not interrupted: it waits on after a restart.
        """
        reply, task = chat.running_message, self._replies.get(chat.chat_id)
        is_waiting = reply is not None and reply.status is MessageStatus.TOOLS
        if reply is None or (task is None and not is_waiting):
            return
        if is_waiting:
            self._client.abort(reply_request_id(reply))  # it has ended, and stays
            if status is MessageStatus.STOPPED:
                ToolDesk.give_up(reply)
        elif status is MessageStatus.INTERRUPTED:  # before the abort that leaving the stream is
            self._client.control(Suspend(request_id=reply_request_id(reply)))
        if task is not None:
            del self._replies[chat.chat_id]
            self._ending.add(task)
            task.cancel()
        if not is_waiting or status is MessageStatus.STOPPED:
            reply.status = status
            self._tell_ended(chat, reply)

    def _on_done(self, chat: Conversation, task: asyncio.Task[Message]) -> None:
        self._ending.discard(task)
        is_current = self._replies.get(chat.chat_id) is task
        if is_current:
            del self._replies[chat.chat_id]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            reply = chat.running_message
            if isinstance(error, EngineError | StudioError):
                self._notices.report(error)
            else:
                _log.error("a reply of chat %d failed", chat.chat_id, exc_info=error)
            if is_current and reply is not None:
                is_known = reply.status is MessageStatus.TOOLS
                reply.status = MessageStatus.INTERRUPTED if is_known else MessageStatus.FAILED
                is_ours = isinstance(error, EngineError | StudioError)
                reply.note = str(error) if is_ours else "the log has the particulars"
                self._tell_ended(chat, reply)
                self.ended.emit(chat, reply)
        elif is_current:
            self.ended.emit(chat, task.result())

    def _tell_ended(self, chat: Conversation, reply: Message) -> None:
        end_park(reply, self._clock())
        self._records.save_message(chat, reply)
        self._book.message_changed.emit(reply)
        self._book.chat_changed.emit(chat)


def _too_long(event: RequestEvent) -> ContextLengthExceeded | None:
    """What is told once it is known whether it is about the tools."""
    error = event.error if isinstance(event, Failed) else None
    return error if isinstance(error, ContextLengthExceeded) else None
