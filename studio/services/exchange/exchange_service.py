"""Chats out into files and in from them. GUI thread, asyncio, no Qt; files are read and written in worker threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.chat import Conversation
from studio.models.errors import ExchangeError
from studio.services.chat_book import ChatBook
from studio.services.chat_prompt import full_title
from studio.services.chat_records import ChatRecords
from studio.services.exchange.archive import read_chats
from studio.services.exchange.importing import Importer, ImportReport, ImportRun
from studio.services.exchange.layby_file import encode, entry_of
from studio.services.exchange.markdown_file import Labels, file_name, to_markdown
from studio.services.folder_service import FolderService
from studio.services.safe_file import write_atomically


class ExchangeService:
    """Methods raise ExchangeError for files, StoreError for the history; what was imported before stays."""

    def __init__(
        self,
        book: ChatBook,
        records: ChatRecords,
        folders: FolderService,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._book = book
        self._records = records
        self._folders = folders
        self._clock = clock

    async def loaded(self, chats: Sequence[Conversation]) -> list[Conversation]:
        """The same chats with their messages read."""
        for chat in chats:
            await self._records.load(chat)
        return list(chats)

    async def export_json(self, chats: Sequence[Conversation], path: Path) -> None:
        """Write chats with all their versions into one file, which can be imported again."""
        entries = []
        for chat in chats:
            await self._records.load(chat)
            entries.append(entry_of(chat, self._folder_names(chat)))
        await _write(path, await asyncio.to_thread(encode, entries, now_s=self._clock()))

    async def export_markdown(
        self, chats: Sequence[Conversation], path: Path, *, labels: Labels
    ) -> None:
        """Write the shown version of one chat into a file, or of several into one file each in the folder `path`."""
        pages: dict[str, bytes] = {}
        for chat in await self.loaded(chats):
            page = to_markdown(chat, labels).encode("utf-8", "replace")
            if len(chats) == 1:
                await _write(path, page)
                return
            pages[file_name(full_title(chat), taken=pages)] = page
        for name, page in pages.items():
            await _write(path / f"{name}.md", page)

    async def import_file(self, path: Path, run: ImportRun | None = None) -> ImportReport:
        """Add the chats of a file. One that is here already, with every message, is not added again.

        `run` tells how far it is, and may stop it.
        """
        reading = await asyncio.to_thread(read_chats, path)
        importer = Importer(self._book, self._records, self._folders)
        return await importer.add(reading, run or ImportRun())

    def _folder_names(self, chat: Conversation) -> list[str]:
        names: list[str] = []
        folder = self._folders.folders.get(chat.folder_id or 0)
        while folder is not None and len(names) < len(self._folders.folders):
            names.insert(0, folder.name)
            folder = self._folders.folders.get(folder.parent_id or 0)
        return names


async def _write(path: Path, data: bytes) -> None:
    try:
        await asyncio.to_thread(write_atomically, path, data)
    except OSError as error:
        raise ExchangeError(
            f"{path} cannot be written: {system_fault(error)}; choose another place"
        ) from error
