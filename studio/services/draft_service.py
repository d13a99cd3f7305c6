"""What is not sent yet: drafts with their files, and the prompt that waits for the end of a reply or for a model.

GUI thread, asyncio, no Qt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from engine.api import EngineState, ModelChanged
from engine.client import EngineClient
from studio.models.attachment import Attachment
from studio.models.chat import Conversation, Message, MessageStatus, QueuedPrompt
from studio.models.errors import StoreError
from studio.services.chat_book import ChatBook
from studio.services.chat_records import ChatRecords
from studio.services.context_service import ContextService
from studio.services.history_rows import Holder
from studio.services.turn_service import TurnService

_ENDED_WELL = frozenset({MessageStatus.DONE, MessageStatus.LENGTH})


class DraftService:
    """A queued prompt is sent by itself when the reply before it has ended well, or the model that it waits for is
    ready, also after a restart, and there is room for it; otherwise it waits for the user. Where it cannot be stored
    when its turn has come, that is tried again until it can.
    """

    def __init__(
        self,
        client: EngineClient,
        book: ChatBook,
        records: ChatRecords,
        *,
        turns: TurnService,
        room: ContextService,
    ) -> None:
        self._room = room
        self._book = book
        self._records = records
        self._turns = turns
        self._sending: set[asyncio.Task[bool]] = set()
        turns.ended.connect(self._on_ended)
        self._disconnect = client.on_model_changed(self._on_model_changed)

    def set_draft(self, chat: Conversation, text: str) -> None:
        """Keep unsent text; it is saved with the next tick."""
        if text != chat.draft and chat in self._book.chats:
            beginning, chat.draft = chat.draft_beginning, text
            self._records.save_chat(chat)
            if beginning != chat.draft_beginning:  # this is told, not each letter of a long one
                self._book.chat_changed.emit(chat)

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
        is_queued = await self._put_into_queue(chat, QueuedPrompt(text=text, attachments=files))
        if is_queued and chat.running_message is None:  # it ended when nothing was queued yet
            await self._send_if_it_fits(chat)
        return is_queued

    async def queue_for_model(self, chat: Conversation, text: str) -> bool:
        """The same in a chat in which no reply runs: they wait for a model to be ready.

        False, and nothing has changed, if there is nothing in it or one waits already. Raises StoreError.
        """
        files = chat.draft_attachments
        is_busy = chat.running_message is not None or chat.queued is not None
        if is_busy or not (text.strip() or files):
            return False
        prompt = QueuedPrompt(text=text, attachments=files, waits_for_model=True)
        return await self._put_into_queue(chat, prompt)

    async def set_aside(self, chat: Conversation, text: str) -> bool:
        """Put the draft, for which there is no room, where its chat asks about it once it is looked at.

        False, and nothing has changed, if `text` is not the draft any more, nothing is in it, or one waits already.
        Raises StoreError.
        """
        files = chat.draft_attachments
        if chat.queued is not None or text != chat.draft or not (text.strip() or files):
            return False
        return await self._put_into_queue(
            chat, QueuedPrompt(text=text, attachments=files, is_too_long=True)
        )

    async def send_waiting(self, chat: Conversation) -> bool:
        """Send the prompt that waited for a model, now that there is one; False if it is not sent (yet)."""
        if chat.queued is None or not chat.queued.waits_for_model:
            return False
        return await self._send_if_it_fits(chat)

    async def send_behind(self, chat: Conversation, text: str) -> bool:
        """Send the prompt that could not be stored before, and let this one and the draft's files wait behind it.

        False, and the draft is as it was, if that cannot be stored now either. Raises StoreError.
        """
        await self._send(chat)
        return await self.queue(chat, text)

    async def take_back(self, chat: Conversation) -> str:
        """Put the queued prompt back into the draft, before what is there; the draft's text.

        Raises StoreError, having changed nothing.
        """
        queued = chat.queued
        if queued is not None:
            await self._records.hand_over(chat, queued.attachments, Holder.DRAFT)
        if queued is not None and chat.queued is queued:  # it may have been sent meanwhile
            chat.queued = None
            chat.draft = "\n\n".join(part for part in (queued.text, chat.draft) if part)
            chat.draft_attachments = (*queued.attachments, *chat.draft_attachments)
            self._tell(chat)
        return chat.draft

    async def send_now(self, chat: Conversation) -> bool:
        """Stop the reply, keeping its text, and send the queued prompt.

        False, and nothing is stopped, if there is none or it is too long.
        """
        if not await self._turns.read(chat) or chat.queued is None or not await self._fits(chat):
            return False
        self._turns.stop(chat)
        return await self._send(chat)

    async def close(self) -> None:
        """Return once nothing is being sent any more."""
        self._disconnect()
        if self._sending:
            await asyncio.wait(self._sending)

    async def _put_into_queue(self, chat: Conversation, prompt: QueuedPrompt) -> bool:
        """False if one was faster meanwhile. Raises StoreError, having changed nothing."""
        draft, files = chat.draft, prompt.attachments
        await self._records.hand_over(chat, files, Holder.QUEUED)
        if chat.queued is not None:
            return False
        chat.queued = prompt
        chat.draft = "" if chat.draft == draft else chat.draft  # somebody may have typed on
        chat.draft_attachments = tuple(one for one in chat.draft_attachments if one not in files)
        self._tell(chat)
        return True

    def _tell(self, chat: Conversation) -> None:
        self._records.save_chat(chat)
        self._book.chat_changed.emit(chat)

    async def _send_if_it_fits(self, chat: Conversation) -> bool:
        return await self._send(chat, must_fit=True)

    async def _send(self, chat: Conversation, *, must_fit: bool = False) -> bool:
        """Send the queued prompt, now or as soon as it can be stored; False if it was not sent now."""
        try:
            await self._records.load(chat)  # what it must fit behind
            if must_fit and not await self._fits(chat):
                return False
            return await self._turns.send_queued(chat)
        except StoreError as error:
            if chat.queued is not None:
                self._mark(chat, waits_for_store=True)
                self._records.try_again(chat, lambda: self._send_again(chat), error)
            return False

    async def _send_again(self, chat: Conversation) -> bool:
        """Whether nothing is to be sent here any more. Raises StoreError."""
        if chat.queued is None or not chat.queued.waits_for_store or chat not in self._book.chats:
            return True
        was_read = chat.is_loaded
        await self._records.load(chat)
        is_running = chat.running_message is not None  # then it waits for the end of that
        if is_running or not (was_read or await self._fits(chat)):
            self._mark(chat, waits_for_store=False)
            return True
        return await self._turns.send_queued(chat)

    def _mark(self, chat: Conversation, *, waits_for_store: bool) -> None:
        if chat.queued is not None and chat.queued.waits_for_store != waits_for_store:
            chat.queued = replace(chat.queued, waits_for_store=waits_for_store)
            self._book.chat_changed.emit(chat)

    async def _fits(self, chat: Conversation) -> bool:
        """Whether there is room for the queued prompt; if not, it is marked and stays."""
        prompt = chat.queued
        if prompt is None:
            return False
        asked = replace(chat, draft_attachments=prompt.attachments)
        use = await self._room.use(asked, prompt.text)
        if use is None or use.fits:
            return True
        if chat.queued is prompt:
            chat.queued = replace(prompt, is_too_long=True, waits_for_model=False)
            self._book.chat_changed.emit(chat)
        return False

    def _on_ended(self, chat: Conversation, reply: Message) -> None:
        if chat.queued is not None and reply.status in _ENDED_WELL:
            self._start(self._send_if_it_fits(chat))

    def _on_model_changed(self, event: ModelChanged) -> None:
        waiting = [one for one in self._book.chats if one.queued and one.queued.waits_for_model]
        for chat in waiting if not self._book.is_closing else ():
            if event.state is EngineState.READY:
                self._start(self.send_waiting(chat))
            elif event.state is not EngineState.NO_MODEL:  # which one at rest is too
                self._mark(chat, waits_for_store=False)

    def _start(self, work: Coroutine[Any, Any, bool]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
