"""What is kept of the chats, and what never is: temporary chats get their ids here and leave no trace on the disk.

GUI thread, asyncio, no Qt. Methods that wait have committed when they return; `save_*` is written with the next tick.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from studio.models.attachment import Attachment
from studio.models.chat import Conversation, Message
from studio.models.errors import StoreError
from studio.models.message_tree import MessageTree
from studio.services.chat_saver import ChatSaver, Work
from studio.services.history_rows import Holder
from studio.services.history_store import HistoryStore


class ChatRecords:
    """Between the chats in memory and the history. Methods that wait raise StoreError, having changed nothing."""

    def __init__(self, store: HistoryStore, saver: ChatSaver) -> None:
        self._store = store
        self._saver = saver
        self._temporary_ids = itertools.count(-1, -1)

    def begin_chat(self, chat: Conversation, *, is_temporary: bool = False) -> None:
        """Give a new chat its id. It is stored with the next tick, or with the first that is stored of it."""
        chat.chat_id = next(self._temporary_ids) if is_temporary else self._store.new_chat_id()
        self.save_chat(chat)

    async def add_chat(self, chat: Conversation, *, is_temporary: bool = False) -> None:
        """Store a new chat; it gets its id."""
        if is_temporary:
            chat.chat_id = next(self._temporary_ids)
        else:
            chat.chat_id = await self._store.add_chat(chat)

    async def add_messages(self, chat: Conversation, messages: Sequence[Message]) -> None:
        """Store new messages and the chat as it is given, in one commit; the messages get their ids.

        The first hangs on its own parent, each other one on the one before it.
        """
        if chat.is_temporary:
            ids = [next(self._temporary_ids) for _ in messages]
        else:
            ids = await self._store.add_messages(chat, messages)
            self._saver.took()
        for message, message_id in zip(messages, ids, strict=True):
            message.message_id = message_id

    async def load(self, chat: Conversation) -> None:
        """Read the messages of a chat, once."""
        if chat.is_loaded:
            return
        messages = await self._store.load_messages(chat.chat_id)
        drafted = await self._store.load_waiting(chat.chat_id, Holder.DRAFT)
        queued = await self._store.load_waiting(chat.chat_id, Holder.QUEUED)
        if chat.is_loaded:  # somebody else was faster meanwhile
            return
        chat.tree = MessageTree(messages)
        chat.show(chat.tree.get(chat.leaf_id) or chat.tree.newest_end(None))
        chat.draft_attachments = (*drafted, *chat.draft_attachments)
        if chat.queued is not None:
            chat.queued = replace(chat.queued, attachments=queued)
        chat.is_loaded = True

    async def messages_of(self, chat: Conversation) -> Iterable[Message]:
        """All messages of a chat; those of one that has not been opened are read and not kept."""
        return chat.tree if chat.is_loaded else await self._store.load_messages(chat.chat_id)

    async def add_whole_chats(
        self, chats: Sequence[tuple[Conversation, Sequence[Message]]]
    ) -> None:
        """Store new chats with their messages, parents first, in one commit. They get their ids, and are not loaded.

        A chat's `leaf_id` is one of the ids that its messages have here.
        """
        added = await self._store.add_whole_chats(chats)
        for (chat, _), ids in zip(chats, added, strict=True):
            chat.chat_id, chat.leaf_id = ids

    async def copy_tree(self, source: Sequence[Message], target: Conversation) -> None:
        """Give a new chat copies of messages, parents first; it shows the version that ends with the last."""
        if target.is_temporary:
            ids = {message.message_id: next(self._temporary_ids) for message in source}
        else:
            ids = await self._store.copy_messages(target, source)
        target.tree = MessageTree(_copy(message, target, ids) for message in source)
        target.show(target.tree.get(ids[source[-1].message_id]) if source else None)
        target.is_loaded = True

    async def remove_message(self, chat: Conversation, message: Message) -> None:
        """Delete a message that has been taken out of the tree; what hung on it is saved as it hangs now."""
        if not chat.is_temporary:
            self._saver.forget_message(message)
            await self._saver.flush()
            await self._store.delete_message(message.message_id)

    async def put_back_message(self, chat: Conversation, message: Message) -> None:
        """Store a removed message again."""
        if not chat.is_temporary:
            self._saver.remember_message(message)
            await self._store.put_back_message(message)

    async def attach(self, chat: Conversation, attachment: Attachment) -> Attachment:
        """Store a file of the draft; the attachment with the id it got."""
        if chat.is_temporary:
            return attachment
        attachment_id = await self._store.attach(chat, attachment, Holder.DRAFT)
        return replace(attachment, attachment_id=attachment_id)

    async def detach(self, chat: Conversation, attachments: Sequence[Attachment]) -> None:
        """Delete files of the draft or of the queued prompt."""
        if not chat.is_temporary:
            await self._store.detach([one.attachment_id for one in attachments])

    async def hand_over(
        self, chat: Conversation, attachments: Sequence[Attachment], holder: Holder
    ) -> None:
        """Let files belong to the draft, or to the queued prompt, from now on."""
        if not chat.is_temporary and attachments:
            await self._store.hand_over([one.attachment_id for one in attachments], holder)

    async def delete_for_good(self, chats: Sequence[Conversation]) -> None:
        """Delete chats and all that belongs to them."""
        for chat in chats:
            self._saver.forget(chat)
        if stored := [chat.chat_id for chat in chats if not chat.is_temporary]:
            await self._store.delete_chats(stored)

    def save_chat(self, chat: Conversation) -> None:
        """Write the chat (not its messages) with the next tick."""
        if not chat.is_temporary:
            self._saver.save_chat(chat)

    def save_message(self, chat: Conversation, message: Message) -> None:
        """Write the chat and this message with the next tick, or now if the message has ended."""
        if not chat.is_temporary:
            self._saver.save_message(chat, message)

    def refuse(self, error: StoreError) -> None:
        """Show why messages were not stored, until others are."""
        self._saver.refuse(error)

    def try_again(self, chat: Conversation, work: Work, error: StoreError) -> None:
        """Tell the error, and do what raised it again with each tick, until it answers True; one work for a chat."""
        self._saver.owe(chat, work, error)

    async def flush(self) -> None:
        """Write what is marked now; a failure becomes a notice."""
        await self._saver.flush()


def _copy(message: Message, target: Conversation, ids: dict[int, int]) -> Message:
    return replace(
        message,
        message_id=ids[message.message_id],
        chat_id=target.chat_id,
        parent_id=ids.get(message.parent_id or 0),
        stats=replace(message.stats),
    )
