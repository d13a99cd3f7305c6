"""Versions of a chat: which is shown, a reply written otherwise by hand, one message deleted, a branch as a new chat.

GUI thread, asyncio, no Qt. Nothing here asks the engine, and nothing is done to a chat that is answering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from studio.models.chat import NEW_CHAT_TITLE, Conversation, Message, MessageStatus, Role
from studio.models.errors import StoreError
from studio.models.tool_use import ChatTools
from studio.models.undo import Undo, UndoKind
from studio.services.call_rows import settled
from studio.services.chat_book import ChatBook
from studio.services.chat_prompt import numbered_title
from studio.services.chat_records import ChatRecords
from studio.services.history_rows import valid_text
from studio.services.notice_service import NoticeService


class VersionService:
    """What returns False or None has changed nothing; a full disk is a notice as well."""

    def __init__(
        self,
        book: ChatBook,
        records: ChatRecords,
        notices: NoticeService,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._book = book
        self._records = records
        self._notices = notices
        self._clock = clock

    def choose(self, chat: Conversation, version: Message) -> bool:
        """Show another version of a message, with the newest of what follows it."""
        if chat.running_message is not None or self._book.is_changing(chat):
            return False
        chat.show(chat.tree.newest_end(version))
        self._records.save_chat(chat)
        self._book.tell_path(chat)
        return True

    async def edit_reply(self, chat: Conversation, reply: Message, text: str) -> bool:
        """Put another text in the place of a reply, as a version beside it; nothing is asked."""
        if reply.role is not Role.ASSISTANT or not text.strip():
            return False
        with self._changing(chat, reply) as may_change:
            if not may_change:
                return False
            edited = Message(0, chat.chat_id, reply.role, valid_text(text), self._clock())
            edited.parent_id = reply.parent_id
            try:
                await self._records.add_messages(chat, [edited])
            except StoreError as error:
                self._records.refuse(error)
                return False
            chat.tree.add(edited)
            chat.show(edited)
            self._records.save_chat(chat)
            self._book.tell_path(chat)
        return True

    async def delete_message(self, chat: Conversation, message: Message) -> bool:
        """Delete one message with its files; what follows it stays. It can be undone."""
        with self._changing(chat, message) as may_change:
            if not may_change:
                return False
            leaf = _leaf_without(chat, message)
            orphans = chat.tree.remove(message)
            chat.show(leaf)
            self._save(chat, orphans)
            self._book.tell_path(chat)
            try:
                await self._records.remove_message(chat, message)
            except StoreError as error:  # it comes back with the next start
                self._notices.report(error)
        undo = Undo(
            kind=UndoKind.MESSAGE_DELETED,
            name=chat.title,
            run=lambda: self._put_back(chat, message, orphans),
        )
        self._book.undo_offered.emit(undo)
        return True

    async def branch(self, chat: Conversation, message: Message) -> Conversation | None:
        """A new chat with the messages up to this one, at the top of the list."""
        path = chat.tree.path_to(message)
        return await self._copy_of(chat, path)

    async def copy_shown(self, chat: Conversation) -> Conversation | None:
        """A new chat with the messages that are shown, as they are now."""
        try:
            await self._records.load(chat)
        except StoreError as error:
            self._notices.report(error)
            return None
        return await self._copy_of(chat, chat.messages)

    async def duplicate(self, chat: Conversation) -> Conversation | None:
        """A new chat with all versions of all messages, showing the same ones."""
        try:
            await self._records.load(chat)
        except StoreError as error:
            self._notices.report(error)
            return None
        return await self._copy_of(chat, list(chat.tree))

    async def _copy_of(
        self, chat: Conversation, messages: Sequence[Message]
    ) -> Conversation | None:
        now_s, taken = self._clock(), {one.title for one in self._book.chats}
        is_untitled = chat.title == NEW_CHAT_TITLE
        made = Conversation(
            chat_id=0,
            title=chat.title if is_untitled else numbered_title(chat.title, taken),
            created_s=now_s,
            updated_s=now_s,
            settings=chat.settings,
            preset_id=chat.preset_id,
            folder_id=chat.folder_id,
            tools=ChatTools(servers=chat.tools.servers),
        )
        try:
            await self._records.add_chat(made, is_temporary=chat.is_temporary)
            await self._records.copy_tree([_settled(one) for one in messages], made)
        except StoreError as error:
            self._notices.report(error)
            return None
        if made.tree and chat.leaf_id is not None:
            self._show_same(chat, made, messages)
        self._records.save_chat(made)
        self._book.add(made)
        return made

    @staticmethod
    def _show_same(chat: Conversation, made: Conversation, messages: Sequence[Message]) -> None:
        """Let the copy show the version that the original shows, where it has that."""
        copies = dict(zip((one.message_id for one in messages), made.tree, strict=True))
        if (leaf := copies.get(chat.leaf_id or 0)) is not None:
            made.show(leaf)

    async def _put_back(
        self, chat: Conversation, message: Message, orphans: tuple[Message, ...]
    ) -> None:
        with self._book.changing(chat) as may_change:
            is_rooted = message.parent_id is None or chat.tree.get(message.parent_id) is not None
            if not may_change or chat.running_message is not None or not is_rooted:
                return
            await self._records.put_back_message(chat, message)
            shown = chat.messages[-1] if chat.messages else None
            chat.tree.put_back(message, orphans)
            is_above = any(orphan in chat.messages for orphan in orphans)
            chat.show(shown if is_above else message)
            self._save(chat, orphans)
            self._book.tell_path(chat)

    def _save(self, chat: Conversation, messages: Sequence[Message]) -> None:
        self._records.save_chat(chat)
        for message in messages:
            self._records.save_message(chat, message)

    @contextmanager
    def _changing(self, chat: Conversation, message: Message) -> Iterator[bool]:
        """Whether the message is shown and the chat may be changed, also while something is waited for."""
        with self._book.changing(chat) as may_change:
            yield may_change and chat.running_message is None and message in chat.messages


def _settled(message: Message) -> Message:
    """A copy of what is being written goes no further."""
    if not message.status.is_alive:
        return message
    stats, calls = replace(message.stats), settled(message.calls)
    return replace(message, status=MessageStatus.STOPPED, park=None, stats=stats, calls=calls)


def _leaf_without(chat: Conversation, message: Message) -> Message | None:
    """Where the shown version ends without a message: as before; or, if it was the end, with another version of it or
    before it."""
    last = chat.messages[-1]
    if last is not message:
        return last
    others = [one for one in chat.versions_of(message) if one is not message]
    return chat.tree.newest_end(others[-1]) if others else chat.tree.get(message.parent_id)
