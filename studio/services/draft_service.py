"""What is not sent yet: the drafts with their files, and the prompt that waits for the end of a reply.

GUI thread, asyncio, no Qt.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from studio.models.attachment import Attachment
from studio.models.chat import Conversation, Message, MessageStatus, QueuedPrompt
from studio.services.chat_book import ChatBook
from studio.services.chat_records import ChatRecords
from studio.services.context_service import ContextService
from studio.services.history_rows import Holder
from studio.services.reply_runner import ReplyRunner
from studio.services.turn_service import TurnService

_ENDED_WELL = frozenset({MessageStatus.DONE, MessageStatus.LENGTH})


class DraftService:
    """A queued prompt is sent by itself when the reply before it has ended well and there is room for it; otherwise it
    waits for the user.
    """

    def __init__(
        self,
        book: ChatBook,
        records: ChatRecords,
        turns: TurnService,
        runner: ReplyRunner,
        *,
        context: ContextService,
    ) -> None:
        self._context = context
        self._book = book
        self._records = records
        self._turns = turns
        self._runner = runner
        self._sending: set[asyncio.Task[bool]] = set()
        runner.ended.connect(self._on_ended)

    def set_draft(self, chat: Conversation, text: str) -> None:
        """Keep unsent text; it is saved with the next tick."""
        if text != chat.draft and chat in self._book.chats:
            chat.draft = text
            self._records.save_chat(chat)

    async def attach(self, chat: Conversation, attachment: Attachment) -> None:
        """Add a file to the draft. Raises StoreError if it cannot be stored."""
        stored = await self._records.attach(chat, attachment)
        chat.draft_attachments = (*chat.draft_attachments, stored)
        self._book.chat_changed.emit(chat)

    async def detach(self, chat: Conversation, attachment: Attachment) -> None:
        """Take a file out of the draft. Raises StoreError if that cannot be stored."""
        left = tuple(one for one in chat.draft_attachments if one is not attachment)
        if len(left) < len(chat.draft_attachments):
            chat.draft_attachments = left
            self._book.chat_changed.emit(chat)
            await self._records.detach(chat, [attachment])

    async def queue(self, chat: Conversation, text: str) -> bool:
        """Let a prompt and the draft's files wait for the end of the running reply; the draft is empty then.

        False, and nothing has changed, if there is nothing in it, no reply runs, or one waits already. Raises
        StoreError.
        """
        files = chat.draft_attachments
        has_something = bool(text.strip() or files)
        if not has_something or chat.running_message is None or chat.queued is not None:
            return False
        chat.queued = QueuedPrompt(text=text, attachments=files)
        chat.draft, chat.draft_attachments = "", ()
        await self._hand_over(chat, files, Holder.QUEUED)
        if (
            chat.running_message is None
        ):  # it has ended meanwhile, when nothing was in the queue yet
            await self._send_if_it_fits(chat)
        return True

    async def take_back(self, chat: Conversation) -> str:
        """Put the queued prompt back into the draft, before what is there; the draft's text. Raises StoreError."""
        queued = chat.queued
        if queued is not None:
            chat.queued = None
            chat.draft = "\n\n".join(part for part in (queued.text, chat.draft) if part)
            chat.draft_attachments = (*queued.attachments, *chat.draft_attachments)
            await self._hand_over(chat, queued.attachments, Holder.DRAFT)
        return chat.draft

    async def send_now(self, chat: Conversation) -> bool:
        """Stop the reply, keeping its text, and send the queued prompt.

        False, and nothing is stopped, if there is none or it is too long.
        """
        if chat.queued is None or not await self._fits(chat):
            return False
        self._runner.stop(chat)
        return await self._turns.send_queued(chat)

    async def close(self) -> None:
        """Return once nothing is being sent any more."""
        if self._sending:
            await asyncio.wait(self._sending)

    async def _hand_over(
        self, chat: Conversation, files: tuple[Attachment, ...], holder: Holder
    ) -> None:
        self._records.save_chat(chat)
        self._book.chat_changed.emit(chat)
        await self._records.hand_over(chat, files, holder)

    async def _send_if_it_fits(self, chat: Conversation) -> bool:
        return await self._fits(chat) and await self._turns.send_queued(chat)

    async def _fits(self, chat: Conversation) -> bool:
        """Whether there is room for the queued prompt; if not, it is marked and stays."""
        prompt = chat.queued
        if prompt is None:
            return False
        asked = replace(chat, draft_attachments=prompt.attachments)
        use = await self._context.use(asked, prompt.text)
        if use is None or use.fits:
            return True
        if chat.queued is prompt:
            chat.queued = replace(prompt, is_too_long=True)
            self._book.chat_changed.emit(chat)
        return False

    def _on_ended(self, chat: Conversation, reply: Message) -> None:
        if chat.queued is None or reply.status not in _ENDED_WELL:
            return
        task = asyncio.get_running_loop().create_task(self._send_if_it_fits(chat))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
