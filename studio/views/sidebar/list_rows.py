"""What stands in the list of chats, row by row: headings, folders, chats. Pure functions on the GUI thread.

Must not import services or widgets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum

from studio.models.chat import Conversation
from studio.models.folder import Folder
from studio.models.search_hit import Snippet
from studio.views.sidebar.program_runs import RunRow
from studio.views.words import tr


class Section(Enum):
    """A part of the list under a heading."""

    PINNED = "pinned"
    PROGRAMS = "programs"
    """Requests over the API."""
    FOLDERS = "folders"
    TODAY = "today"
    YESTERDAY = "yesterday"
    WEEK = "week"
    MONTH = "month"
    EARLIER = "earlier"
    ARCHIVED = "archived"
    DELETED = "deleted"
    NAMES = "names"
    """Of a search."""
    TEXTS = "texts"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRow:
    """A heading."""

    section: Section

    @property
    def key(self) -> tuple[str, object]:
        return "section", self.section


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRow:
    """A folder; what is in it follows while it is open."""

    folder: Folder
    depth: int
    num_chats: int
    """In it and in the folders in it."""

    @property
    def key(self) -> tuple[str, object]:
        return "folder", self.folder.folder_id


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRow:
    """A chat; of a search, where in it the words are."""

    chat: Conversation
    section: Section
    depth: int = 0
    message_id: int | None = None
    snippet: Snippet | None = None

    @property
    def key(self) -> tuple[str, object]:
        return "chat", self.chat.chat_id


Row = HeaderRow | FolderRow | ChatRow | RunRow


def rows_of(
    chats: Sequence[Conversation],
    folders: Mapping[int, Folder],
    programs: Sequence[RunRow],
    *,
    now_s: float,
) -> Iterator[Row]:
    """The list as it usually is: pinned chats, requests of programs, folders, the others by day of last use.

    One after another: of thousands of chats the first few hundred rows are wanted.
    """
    listed = [chat for chat in chats if not chat.is_archived]
    pinned = [chat for chat in listed if chat.is_pinned]
    loose = [chat for chat in listed if not chat.is_pinned and chat.folder_id is None]
    yield from section_rows(Section.PINNED, pinned)
    if programs:
        yield HeaderRow(section=Section.PROGRAMS)
        yield from programs
    if folders:
        yield HeaderRow(section=Section.FOLDERS)
        yield from _Shelves(listed, folders).rows(None, 0)
    section_of, places = section_by_day(now_s), list(Section)
    place = -1
    for chat in loose:
        own = places.index(section_of(chat.updated_s))
        if own > place:  # never back to one above, whatever a clock once said
            place = own
            yield HeaderRow(section=places[place])
        yield ChatRow(chat=chat, section=places[place])


def section_rows(section: Section, chats: Iterable[Conversation]) -> list[Row]:
    """A heading and its chats; nothing where there are none."""
    rows: list[Row] = [ChatRow(chat=chat, section=section) for chat in chats]
    return [HeaderRow(section=section), *rows] if rows else []


def section_by_day(now_s: float) -> Callable[[float], Section]:
    """Which section a moment belongs to, as days are counted here and now.

    One after tomorrow, which another zone may explain, is the word of a clock that was wrong, and no use of today.
    """
    today = date.fromtimestamp(now_s)

    def first_s(days_ago: int) -> float:
        day = date.fromordinal(today.toordinal() - days_ago)
        return datetime(day.year, day.month, day.day).timestamp()

    bounds = (
        (first_s(-2), Section.EARLIER),
        (first_s(0), Section.TODAY),
        (first_s(1), Section.YESTERDAY),
        (first_s(6), Section.WEEK),
        (first_s(29), Section.MONTH),
    )

    def section_of(moment_s: float) -> Section:
        return next(
            (section for start_s, section in bounds if moment_s >= start_s), Section.EARLIER
        )

    return section_of


def heading(section: Section) -> str:
    """A section's heading in the user's language."""
    return {
        Section.PINNED: tr("Pinned"),
        Section.PROGRAMS: tr("Programs"),
        Section.FOLDERS: tr("Folders"),
        Section.TODAY: tr("Today"),
        Section.YESTERDAY: tr("Yesterday"),
        Section.WEEK: tr("Last 7 days"),
        Section.MONTH: tr("Last 30 days"),
        Section.EARLIER: tr("Earlier"),
        Section.ARCHIVED: tr("Archived"),
        Section.DELETED: tr("Deleted, kept for 7 days"),
        Section.NAMES: tr("In names"),
        Section.TEXTS: tr("In messages"),
    }[section]


class _Shelves:
    """The folders with what is in them."""

    def __init__(self, chats: Iterable[Conversation], folders: Mapping[int, Folder]) -> None:
        self._inside: dict[int | None, list[Folder]] = {}
        for folder in sorted(folders.values(), key=lambda one: (one.place, one.folder_id)):
            self._inside.setdefault(folder.parent_id, []).append(folder)
        self._chats: dict[int | None, list[Conversation]] = {}
        for chat in chats:
            if chat.folder_id is not None and not chat.is_pinned:
                self._chats.setdefault(chat.folder_id, []).append(chat)

    def rows(self, parent_id: int | None, depth: int) -> Iterator[Row]:
        for folder in self._inside.get(parent_id, ()):
            number = self._count(folder.folder_id)
            yield FolderRow(folder=folder, depth=depth, num_chats=number)
            if folder.is_open:
                yield from self.rows(folder.folder_id, depth + 1)
                for chat in self._chats.get(folder.folder_id, ()):
                    yield ChatRow(chat=chat, section=Section.FOLDERS, depth=depth + 1)

    def _count(self, folder_id: int) -> int:
        inner = (self._count(one.folder_id) for one in self._inside.get(folder_id, ()))
        return len(self._chats.get(folder_id, ())) + sum(inner)
