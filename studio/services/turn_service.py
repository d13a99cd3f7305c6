"""The turns of a chat: a prompt sent, edited, asked again; a reply that goes on.

GUI thread, asyncio, no Qt. Nothing is overwritten: an edited prompt and a reply asked for again are new versions
beside the old ones. The prompt is on disk before the engine hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.client import EngineClient
from studio.models.chat import (
    NEW_CHAT_TITLE,
    ContextCut,
    Conversation,
    Message,
    MessageStatus,
    QueuedPrompt,
    Role,
    reply_request_id,
)
from studio.models.errors import StoreError
from studio.services.chat_book import ChatBook
from studio.services.chat_prompt import title_for
from studio.services.chat_records import ChatRecords
from studio.services.history_rows import valid_text
from studio.services.notice_service import NoticeService
from studio.services.reply_runner import ReplyRunner

_CONTINUABLE = frozenset(
    {
        MessageStatus.STOPPED,
        MessageStatus.LENGTH,
        MessageStatus.INTERRUPTED,
        MessageStatus.FAILED,
    }
)


class TurnService:
    """All that asks the engine for a chat. What returns False has changed nothing; a full disk is a notice as well."""

    def __init__(
        self,
        client: EngineClient,
        book: ChatBook,
        records: ChatRecords,
        *,
        runner: ReplyRunner,
        notices: NoticeService,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._book = book
        self._records = records
        self._runner = runner
        self.ended = runner.ended
        self._notices = notices
        self._clock = clock

    async def send(self, chat: Conversation, text: str, *, cut: ContextCut | None = None) -> bool:
        """Store the prompt with the draft's files, then ask the engine; True once asked, the draft is empty then.

        From this prompt on the model is not given what is cut off.

        False if there is nothing to send, the chat is still answering, or it could not be stored.
        """
        if not await self.read(chat):
            return False
        prompt = QueuedPrompt(text=text, attachments=chat.draft_attachments)
        changed = replace(chat, draft="", draft_attachments=())
        try:
            if not await self._send(chat, prompt, changed, cut=cut):
                return False
        except StoreError as error:
            self._records.refuse(error)
            return False
        chat.draft = ""
        added_since = (one for one in chat.draft_attachments if one not in prompt.attachments)
        chat.draft_attachments = tuple(added_since)
        return self._ask(chat)

    def stop(self, chat: Conversation) -> None:
        """End the running reply, keeping its text; nothing if none is running."""
        self._runner.stop(chat)

    async def send_queued(self, chat: Conversation) -> bool:
        """The same for the queued prompt; the draft stays. Raises StoreError if it could not be stored."""
        await self._records.load(chat)  # its files too
        prompt = chat.queued
        if prompt is None or not await self._send(chat, prompt, replace(chat, queued=None)):
            return False
        chat.queued = None
        return self._ask(chat)

    async def edit_prompt(self, chat: Conversation, prompt: Message, text: str) -> bool:
        """Ask with another text in the place of a prompt, as a version beside it, with the same files.

        A running reply is stopped.
        """
        if not text.strip() or prompt.role is not Role.USER:
            return False
        with self._book.changing(chat) as may_change:
            if not may_change or prompt not in chat.messages:
                return False
            self._runner.stop(chat)
            files = tuple(replace(one, attachment_id=0) for one in prompt.attachments)
            edited = self._prompt(chat, QueuedPrompt(text=text, attachments=files))
            edited.parent_id = prompt.parent_id
            new = [edited, self._reply(chat)]
            if not await self._add(chat, new):
                return False
            self._show_after(chat, prompt.parent_id, new)
        return self._ask(chat)

    async def regenerate(self, chat: Conversation, message: Message) -> bool:
        """Ask for another version of a reply; or, if `message` is a prompt, for another reply to it.

        A running reply is stopped.
        """
        with self._book.changing(chat) as may_change:
            if not may_change or message not in chat.messages:
                return False
            self._runner.stop(chat)
            is_reply = message.role is Role.ASSISTANT
            reply = self._reply(chat)
            reply.parent_id = message.parent_id if is_reply else message.message_id
            if not await self._add(chat, [reply]):
                return False
            self._show_after(chat, reply.parent_id, [reply])
        return self._ask(chat)

    @staticmethod
    def can_continue(chat: Conversation) -> bool:
        """Whether the last reply was cut off, stopped or interrupted, or has failed."""
        last = chat.messages[-1] if chat.messages else None
        return last is not None and last.role is Role.ASSISTANT and last.status in _CONTINUABLE

    def continue_reply(self, chat: Conversation) -> bool:
        """Let the last reply go on: from its state on disk where there is one, else from its text."""
        if self._book.is_changing(chat) or not self.can_continue(chat):
            return False
        reply = chat.messages[-1]
        if reply.calls:
            return self._go_on_after_calls(chat, reply)
        is_kept = reply_request_id(reply) in self._client.snapshot().saved_ids
        if not is_kept:
            reply.stats.num_continues += 1
        self._wake(chat, reply, resumes=is_kept)
        return True

    def _go_on_after_calls(self, chat: Conversation, reply: Message) -> bool:
        """Let the model be told what came of its calls, or that they were not wanted, and say more."""
        reply.status, reply.note = MessageStatus.TOOLS, ""
        self._records.save_message(chat, reply)
        self._book.message_changed.emit(reply)
        self._book.chat_changed.emit(chat)
        self._runner.go_on_after_calls(chat, reply)
        return True

    async def go_on(self, chat: Conversation, request_id: str) -> bool:
        """Go on with an interrupted reply whose state the engine has on disk; True also if that is under way.

        False if the chat does not end with the reply of that request. Raises StoreError if it cannot be read.
        """
        await self._records.load(chat)
        reply = chat.messages[-1] if chat.messages else None
        if reply is None or reply_request_id(reply) != request_id or self._book.is_closing:
            return False
        if reply.status is MessageStatus.INTERRUPTED and not self._book.is_changing(chat):
            self._wake(chat, reply, resumes=True)
        return reply.status.is_alive

    async def _send(
        self,
        chat: Conversation,
        prompt: QueuedPrompt,
        changed: Conversation,
        *,
        cut: ContextCut | None = None,
    ) -> bool:
        """Add the turn; the chat is stored as in `changed`. Raises StoreError."""
        if not (prompt.text.strip() or prompt.attachments) or chat.running_message is not None:
            return False
        with self._book.changing(chat) as may_change:
            if not may_change:
                return False
            if not chat.messages and chat.title == NEW_CHAT_TITLE:
                changed.title = title_for(prompt.text or prompt.attachments[0].name)
            turn = [self._prompt(chat, prompt), self._reply(chat)]
            if cut is not None:
                turn[0].stats.reads_from_id, turn[0].stats.summary = cut.first_id, cut.summary
            turn[0].parent_id = chat.messages[-1].message_id if chat.messages else None
            await self._store(changed, turn)
            chat.title = changed.title
            for message in turn:
                chat.append(message)
        for message in turn:
            self._book.message_added.emit(message)
        return True

    def _prompt(self, chat: Conversation, prompt: QueuedPrompt) -> Message:
        text = valid_text(prompt.text)
        made = Message(0, chat.chat_id, Role.USER, text, self._clock())
        made.attachments = prompt.attachments
        return made

    def _reply(self, chat: Conversation) -> Message:
        queued = MessageStatus.QUEUED
        return Message(0, chat.chat_id, Role.ASSISTANT, "", self._clock(), status=queued)

    async def read(self, chat: Conversation) -> bool:
        """Have the chat's messages and files; False, and a notice, if they cannot be read."""
        try:
            await self._records.load(chat)
        except StoreError as error:
            self._notices.report(error)
            return False
        return True

    async def _add(self, changed: Conversation, messages: Sequence[Message]) -> bool:
        try:
            await self._store(changed, messages)
        except StoreError as error:
            self._records.refuse(error)
            return False
        return True

    async def _store(self, changed: Conversation, messages: Sequence[Message]) -> None:
        await self._records.add_messages(replace(changed, updated_s=self._clock()), messages)

    def _show_after(
        self, chat: Conversation, parent_id: int | None, messages: Sequence[Message]
    ) -> None:
        """Show new messages after one of the chat, in the place of what followed it."""
        chat.show(chat.tree.get(parent_id))
        for message in messages:
            chat.append(message)
        self._book.path_changed.emit(chat)

    def _ask(self, chat: Conversation) -> bool:
        """Ask for the last message; not if the chat was deleted or the program is closing meanwhile."""
        reply = chat.messages[-1]
        if self._book.is_closing or chat not in self._book.chats:
            reply.status = MessageStatus.INTERRUPTED
            self._records.save_message(chat, reply)
            return False
        chat.updated_s = reply.created_s
        self._records.save_chat(chat)  # a tick meanwhile may have written it as it was before
        self._book.to_top(chat)
        self._book.chat_changed.emit(chat)
        self._runner.start(chat, reply)
        return True

    def _wake(self, chat: Conversation, reply: Message, *, resumes: bool) -> None:
        reply.status, reply.note = MessageStatus.QUEUED, ""
        self._records.save_message(chat, reply)
        self._runner.start(chat, reply, resumes=resumes)
        self._book.message_changed.emit(reply)
        self._book.chat_changed.emit(chat)
