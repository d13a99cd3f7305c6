"""Chats out into files and in from them. GUI thread, asyncio, no Qt; files are read and written in worker threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from studio.models.chat import Conversation, Message
from studio.models.errors import ExchangeError
from studio.services.chat_book import ChatBook
from studio.services.chat_prompt import full_title
from studio.services.chat_records import ChatRecords
from studio.services.exchange.archive import read_chats
from studio.services.exchange.layby_file import encode
from studio.services.exchange.markdown_file import Labels, file_name, to_markdown
from studio.services.exchange.reading import ReadChat
from studio.services.folder_service import FolderService
from studio.services.safe_file import write_atomically


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What came of an import."""

    num_new: int = 0
    num_known: int = 0
    """Chats that were here already, with all that the file has of them."""
    num_broken: int = 0


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
        entries = [(chat, self._folder_names(chat)) for chat in await self.loaded(chats)]
        await _write(path, encode(entries, now_s=self._clock()))

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

    async def import_file(self, path: Path) -> ImportReport:
        """Add the chats of a file. One that is here already, with every message, is not added again."""
        reading = await asyncio.to_thread(read_chats, path)
        num_new = 0
        for found in sorted(reading.chats, key=lambda one: one.chat.updated_s):
            if not await self._is_known(found):
                await self._add(found)
                num_new += 1
        return ImportReport(
            num_new=num_new,
            num_known=len(reading.chats) - num_new,
            num_broken=reading.num_broken,
        )

    async def _is_known(self, found: ReadChat) -> bool:
        wanted = _traces(found.messages)
        for chat in list(self._book.chats):
            if chat.created_s == found.chat.created_s:
                await self._records.load(chat)
                if wanted <= _traces(chat.tree):
                    return True
        return False

    async def _add(self, found: ReadChat) -> None:
        chat = found.chat
        chat.is_loaded = True
        chat.folder_id = await self._folder(found.folder)
        await self._records.add_chat(chat)
        await self._records.copy_tree(found.messages, chat)
        places = dict(zip((one.message_id for one in found.messages), chat.tree, strict=True))
        leaf = places.get(found.leaf_id) if found.leaf_id is not None else None
        chat.show(leaf or chat.tree.newest_end(None))
        self._records.save_chat(chat)
        self._book.put_back([chat])

    def _folder_names(self, chat: Conversation) -> list[str]:
        names: list[str] = []
        folder = self._folders.folders.get(chat.folder_id or 0)
        while folder is not None and len(names) < len(self._folders.folders):
            names.insert(0, folder.name)
            folder = self._folders.folders.get(folder.parent_id or 0)
        return names

    async def _folder(self, names: Sequence[str]) -> int | None:
        """The folder of this path, made where it is not there."""
        parent_id: int | None = None
        for name in names:
            inside = self._folders.inside(parent_id)
            folder = next((one for one in inside if one.name == name), None)
            folder = folder or await self._folders.new(name, parent_id=parent_id)
            parent_id = folder.folder_id
        return parent_id


def _traces(messages: Iterable[Message]) -> set[tuple[str, str, float]]:
    return {(one.role.value, one.text, one.created_s) for one in messages}


async def _write(path: Path, data: bytes) -> None:
    try:
        await asyncio.to_thread(write_atomically, path, data)
    except OSError as error:
        raise ExchangeError(
            f"{path} cannot be written: {error.strerror}; choose another place"
        ) from error
