"""Where chats are kept: pinned, archived, in folders, deleted for a while.

GUI thread, asyncio, no Qt. Everything here can be done to several chats at once, and undone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from studio.models.chat import Conversation
from studio.models.undo import Undo, UndoKind
from studio.services.chat_book import ChatBook
from studio.services.chat_records import ChatRecords
from studio.services.reply_runner import ReplyRunner

Back = Callable[[Sequence[Conversation]], Coroutine[Any, Any, None]]

DELETED_KEPT_S = 7 * 24 * 3600.0
"""How long a deleted chat can be brought back."""


class ShelfService:
    """Changes are in memory at once and on the disk with the next tick."""

    def __init__(
        self,
        book: ChatBook,
        records: ChatRecords,
        runner: ReplyRunner,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._book = book
        self._records = records
        self._runner = runner
        self._clock = clock

    def pin(self, chats: Sequence[Conversation], *, is_pinned: bool) -> None:
        """Keep chats at the top of the list, or let go of that."""
        for chat in chats:
            if chat.is_pinned != is_pinned:
                chat.is_pinned = is_pinned
                self._tell(chat)

    def archive(self, chats: Sequence[Conversation], *, is_archived: bool = True) -> None:
        """Take chats out of the list without deleting them, or bring them back into it. A reply goes on."""
        changed = [chat for chat in chats if chat.is_archived != is_archived]
        for chat in changed:
            chat.is_archived = is_archived
            self._tell(chat)
        if changed and is_archived:
            self._offer(UndoKind.CHATS_ARCHIVED, changed, self._unarchive)

    def move(self, chats: Sequence[Conversation], folder_id: int | None) -> None:
        """Put chats into a folder; None: into none."""
        before = {chat: chat.folder_id for chat in chats if chat.folder_id != folder_id}
        for chat in before:
            chat.folder_id = folder_id
            self._tell(chat)

        async def back(changed: Sequence[Conversation]) -> None:
            for chat in changed:
                chat.folder_id = before[chat]
                self._tell(chat)

        if before:
            self._offer(UndoKind.CHATS_MOVED, list(before), back)

    async def delete(self, chats: Sequence[Conversation]) -> None:
        """Take chats out of the list, their replies stopped with the text so far; `restore` brings them back.

        After `DELETED_KEPT_S` they are gone for good; a temporary chat is when the program ends. Raises StoreError.
        """
        there = set(self._book.chats)
        gone = [chat for chat in chats if chat in there]
        for chat in gone:
            self._runner.stop(chat)
            chat.deleted_s = self._clock()
            self._records.save_chat(chat)
        self._book.deleted[:0] = reversed(gone)
        self._book.remove(gone)
        if gone:
            self._book.deleted_changed.emit()
            await self._records.flush()
            self._offer(UndoKind.CHATS_DELETED, gone, self.restore)

    async def restore(self, chats: Sequence[Conversation]) -> None:
        """Bring deleted chats back to where they were; others are passed over."""
        back = self._take_from_deleted(chats)
        for chat in back:
            chat.deleted_s = None
            self._records.save_chat(chat)
        self._book.put_back(back)
        self._book.deleted_changed.emit()

    async def delete_for_good(self, chats: Sequence[Conversation]) -> None:
        """Delete chats and all that belongs to them; they cannot be brought back. Raises StoreError."""
        doomed = tuple(chats)
        for chat in doomed:
            self._runner.stop(chat)
        self._book.remove(doomed)
        self._take_from_deleted(doomed)
        await self._records.delete_for_good(doomed)
        self._book.deleted_changed.emit()

    async def purge(self) -> None:
        """Delete for good what was deleted long ago. Raises StoreError."""
        oldest_s = self._clock() - DELETED_KEPT_S
        old = [chat for chat in self._book.deleted if (chat.deleted_s or 0.0) < oldest_s]
        if old:
            await self.delete_for_good(old)

    def _take_from_deleted(self, chats: Sequence[Conversation]) -> list[Conversation]:
        """Those of them that were there."""
        named, deleted = set(chats), self._book.deleted
        found = [chat for chat in deleted if chat in named]
        deleted[:] = [chat for chat in deleted if chat not in named]
        return found

    async def _unarchive(self, chats: Sequence[Conversation]) -> None:
        self.archive(chats, is_archived=False)

    def _tell(self, chat: Conversation) -> None:
        self._records.save_chat(chat)
        self._book.chat_changed.emit(chat)

    def _offer(self, kind: UndoKind, chats: Sequence[Conversation], back: Back) -> None:
        name = chats[0].title if len(chats) == 1 else ""
        is_one_gone = kind is UndoKind.CHATS_DELETED and len(chats) == 1
        undo = Undo(
            kind=kind,
            number=len(chats),
            name=name,
            chat=chats[0] if is_one_gone else None,
            run=lambda: back(chats),
        )
        self._book.undo_offered.emit(undo)
