"""One prompt over several settings: a chat for each, asked so that those with the same beginning read it once.

GUI thread, asyncio, no Qt. The columns are chats like any other: they run, wait and are parked each in its own time,
outlive a crash, and any of them can be gone on with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from studio.models.chat import NEW_CHAT_TITLE, Conversation, Message, MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.models.signal import Signal
from studio.services.chat_book import ChatBook
from studio.services.chat_prompt import numbered_title, title_for
from studio.services.chat_records import ChatRecords
from studio.services.preset_service import PresetService
from studio.services.shelf_service import ShelfService
from studio.services.turn_service import TurnService
from studio.services.version_service import VersionService

MAX_COLUMNS = 4
_NOT_READ = frozenset({MessageStatus.QUEUED, MessageStatus.READING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is being compared."""

    title: str
    """Of the chat that the columns were made from."""
    made: tuple[Conversation, ...]
    """All columns there were."""
    columns: tuple[Conversation, ...]
    """Those that are left."""

    def place(self, column: Conversation) -> int:
        """The number of a column, which stands in its title too; it keeps it when another is deleted."""
        return self.made.index(column) + 1


def alike(settings: Sequence[ChatSettings]) -> tuple[tuple[int, ...], ...]:
    """The columns that begin alike, by their places from 0: those that have the same system prompt."""
    groups: dict[str, list[int]] = {}
    for place, one in enumerate(settings):
        groups.setdefault(one.system_prompt.strip(), []).append(place)
    return tuple(tuple(group) for group in groups.values())


class CompareService:
    """At most one comparison is remembered; the chats of earlier ones stay what they are."""

    def __init__(
        self,
        book: ChatBook,
        records: ChatRecords,
        turns: TurnService,
        versions: VersionService,
        *,
        shelf: ShelfService,
        presets: PresetService,
    ) -> None:
        self.current: Comparison | None = None
        self.changed: Signal[[]] = Signal()
        self._book = book
        self._records = records
        self._turns = turns
        self._versions = versions
        self._shelf = shelf
        self._presets = presets
        book.chat_removed.connect(self._on_removed)

    async def start(
        self, chat: Conversation, text: str, settings: Sequence[ChatSettings]
    ) -> tuple[Conversation, ...]:
        """Make a column for each of the settings, with the chat's messages and the files of its draft, to ask `text`.

        Fewer where the disk is full, which is a notice then. `ask` sends the prompt.
        """
        columns = []
        title = title_for(text) if chat.title == NEW_CHAT_TITLE else chat.title
        for place, one in enumerate(settings[:MAX_COLUMNS], start=1):
            column = await self._versions.copy_shown(chat)
            if column is not None:
                files = (replace(file, attachment_id=0) for file in chat.draft_attachments)
                column.draft_attachments = tuple(files)
                self._presets.set_settings(column, one)
                self._rename(column, f"{place} · {title}")  # told apart also where the end is cut
                columns.append(column)
        made = tuple(columns)
        self.current = Comparison(title=title, made=made, columns=made) if made else None
        self.changed.emit()
        return made

    async def ask(self, columns: Sequence[Conversation], text: str) -> None:
        """Send the prompt in all columns; where they differ in sampling only, one reads what all have in common."""
        groups = alike([column.settings for column in columns])
        await asyncio.gather(
            *(self._ask_alike([columns[place] for place in group], text) for group in groups)
        )

    async def pick(self, chosen: Conversation) -> None:
        """Go on with one column: the others are deleted, which can be undone. Raises StoreError."""
        comparison = self.current
        if comparison is not None:
            self.dismiss()
            self._rename(chosen, comparison.title)
            await self._shelf.delete([one for one in comparison.columns if one is not chosen])

    def dismiss(self) -> None:
        """Keep all columns as the chats they are."""
        self.current = None
        self.changed.emit()

    def _rename(self, chat: Conversation, title: str) -> None:
        taken = {other.title for other in self._book.chats if other is not chat}
        chat.title = numbered_title(title, taken) if title in taken else title
        self._records.save_chat(chat)
        self._book.chat_changed.emit(chat)

    async def _ask_alike(self, columns: Sequence[Conversation], text: str) -> None:
        first, *others = columns
        if await self._turns.send(first, text) and others:
            await self._until_read(first.messages[-1])
        for column in others:
            await self._turns.send(column, text)

    async def _until_read(self, reply: Message) -> None:
        """Until its prompt has been read: then the pages of it are there for the others."""
        is_read = asyncio.Event()

        def look(message: Message) -> None:
            if message is reply and reply.status not in _NOT_READ:
                is_read.set()

        disconnect = self._book.message_changed.connect(look)
        try:
            look(reply)
            await is_read.wait()
        finally:
            disconnect()

    def _on_removed(self, chat: Conversation) -> None:
        if self.current is None or chat not in self.current.columns:
            return
        left = tuple(one for one in self.current.columns if one is not chat)
        self.current = replace(self.current, columns=left) if len(left) > 1 else None
        self.changed.emit()
