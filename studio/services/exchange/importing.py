"""Chats of a file into the history: many in one commit, told as they come, ended when the user has had enough.

GUI thread, asyncio, no Qt. What is in stays in, whatever happens to the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from studio.models.chat import Conversation, Message
from studio.models.message_tree import MessageTree
from studio.models.signal import Signal
from studio.services.chat_book import ChatBook
from studio.services.chat_records import ChatRecords
from studio.services.exchange.reading import ReadChat, Reading
from studio.services.folder_service import FolderService

MOST_CHATS, MOST_MESSAGES = 100, 500
"""Of one commit: to wait for the disk, and to list the chats anew, costs as much for one chat as for all of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What came of an import."""

    num_new: int = 0
    num_known: int = 0
    """Chats that were here already, with all that the file has of them."""
    num_broken: int = 0
    num_empty: int = 0
    num_left: int = 0
    """Chats that were not looked at any more, because the user ended it."""

    def __add__(self, other: ImportReport) -> ImportReport:
        return ImportReport(
            num_new=self.num_new + other.num_new,
            num_known=self.num_known + other.num_known,
            num_broken=self.num_broken + other.num_broken,
            num_empty=self.num_empty + other.num_empty,
            num_left=self.num_left + other.num_left,
        )


class ImportRun:
    """An import while it goes on. `changed` tells that it is further."""

    def __init__(self) -> None:
        self.num_done = 0
        self.num_chats = 0
        """In the file; 0 while it is being read."""
        self.is_stopped = False
        self.changed: Signal[[]] = Signal()

    def stop(self) -> None:
        """End it after the chats that are being written right now."""
        self.is_stopped = True

    def tell(self, num_done: int, num_chats: int) -> None:
        """So many are done."""
        self.num_done, self.num_chats = num_done, num_chats
        self.changed.emit()


class Importer:
    """Adds the chats that are not here yet. Raises StoreError; what was added before stays."""

    def __init__(self, book: ChatBook, records: ChatRecords, folders: FolderService) -> None:
        self._book = book
        self._records = records
        self._folders = folders
        self._born: defaultdict[float, list[Conversation]] = defaultdict(list)
        """The chats that are here, by the moment they began."""
        for chat in book.chats:
            self._born[chat.created_s].append(chat)

    async def add(self, reading: Reading, run: ImportRun) -> ImportReport:
        """Add those of a file that are not here yet, or not with all their messages."""
        found = sorted(reading.chats, key=lambda one: one.chat.updated_s)
        num_done = num_new = 0
        run.tell(num_done, len(found))
        for some in _parts(found):
            if run.is_stopped:
                break
            num_new += await self._add_new(some)
            num_done += len(some)
            run.tell(num_done, len(found))
        return ImportReport(
            num_new=num_new,
            num_known=num_done - num_new,
            num_broken=reading.num_broken,
            num_empty=reading.num_empty,
            num_left=len(found) - num_done,
        )

    async def _add_new(self, found: Sequence[ReadChat]) -> int:
        """How many of them were new."""
        new: list[ReadChat] = []
        for one in found:
            if not (_is_among(one, new) or await self._is_known(one)):
                one.chat.folder_id = await self._folder(one.folder)
                _show(one)
                new.append(one)
        await self._records.add_whole_chats([(one.chat, one.messages) for one in new])
        for one in new:
            self._born[one.chat.created_s].append(one.chat)
        self._book.put_back([one.chat for one in new])
        return len(new)

    async def _is_known(self, found: ReadChat) -> bool:
        wanted = _traces(found.messages)
        for chat in self._born.get(found.chat.created_s, ()):
            if wanted <= _traces(await self._records.messages_of(chat)):
                return True
        return False

    async def _folder(self, names: Sequence[str]) -> int | None:
        """The folder of this path, made where it is not there."""
        parent_id: int | None = None
        for name in names:
            inside = self._folders.inside(parent_id)
            folder = next((one for one in inside if one.name == name), None)
            folder = folder or await self._folders.new(name, parent_id=parent_id)
            parent_id = folder.folder_id
        return parent_id


def _parts(found: Sequence[ReadChat]) -> Iterator[Sequence[ReadChat]]:
    """As many at a time as belong into one commit."""
    part: list[ReadChat] = []
    num_messages = 0
    for one in found:
        part.append(one)
        num_messages += len(one.messages)
        if len(part) == MOST_CHATS or num_messages >= MOST_MESSAGES:
            yield part
            part, num_messages = [], 0
    if part:
        yield part


def _show(found: ReadChat) -> None:
    """Have the chat end with the version that was shown; its messages are read from the history when it is opened."""
    tree = MessageTree(found.messages)
    leaf = tree.get(found.leaf_id) or tree.newest_end(None)
    if leaf is not None:
        found.chat.leaf_id = leaf.message_id
        found.chat.stored_status, found.chat.stored_note = leaf.status, leaf.note


def _is_among(found: ReadChat, others: Iterable[ReadChat]) -> bool:
    """Whether a file has it twice."""
    return any(
        one.chat.created_s == found.chat.created_s
        and _traces(found.messages) <= _traces(one.messages)
        for one in others
    )


def _traces(messages: Iterable[Message]) -> set[tuple[str, str, float]]:
    return {(one.role.value, one.text, one.created_s) for one in messages}
