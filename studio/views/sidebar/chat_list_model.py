"""The rows of the list of chats for Qt: what they are, how each chat stands, where one may be dropped. GUI thread.

It follows the services' signals and changes only the rows that have changed. Rows of running replies are redrawn a
few times a second, when the window looks at the engine.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from studio.models.chat import Conversation, Message
from studio.models.folder import Folder, lies_within
from studio.services.chat_service import ChatService
from studio.views.frame_ticker import FrameTicker
from studio.views.run_sentences import describe_row, describe_run
from studio.views.run_watch import RunWatch
from studio.views.settling import Settling
from studio.views.sidebar.list_rows import ChatRow, FolderRow, HeaderRow, Row, heading, rows_of
from studio.views.sidebar.program_runs import ProgramRuns, RunRow
from studio.views.sidebar.row_changes import apply_changes
from studio.views.status_words import Mark, StatusWords, describe_chat, title_words
from studio.views.words import plural, tr

_Index = QModelIndex | QPersistentModelIndex
_Place = tuple[bool, bool, int | None, float, str]
_MIME = "application/x-layby-rows"
PAGE_ROWS = 300
"""Rows that are there at first, and that come with each scrolling to the end: the view lays all of them out."""


class RowRole(IntEnum):
    """What the delegate asks for beyond the title."""

    ROW = Qt.ItemDataRole.UserRole + 1
    WORDS = Qt.ItemDataRole.UserRole + 2
    IS_OPEN = Qt.ItemDataRole.UserRole + 3
    """Shown in the pane that commands go to."""
    HUE = Qt.ItemDataRole.UserRole + 4
    """The number of its hue in the pool; None while it is not in flight."""


class ChatListModel(QAbstractListModel):
    """Shows what the services have, or the rows of `show_rows`. Editing a title calls `rename`."""

    dropped = Signal(object, object)
    """Rows that were dragged, and the row they were dropped on."""

    def __init__(
        self,
        chats: ChatService,
        watch: RunWatch,
        ticker: FrameTicker,
        *,
        rename: Callable[[Conversation | Folder, str], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._service = chats
        self._watch = watch
        self._ticker = ticker
        self._rename = rename
        self._programs = ProgramRuns()
        self._make: Callable[[], Iterable[Row]] = self._usual
        self.rows: list[Row] = []
        self._limit = PAGE_ROWS
        self._has_more = False
        self._places: dict[int, _Place] = {}
        """What a chat's row depends on, by chat id, as it was when the rows were made."""
        self._settling = Settling(self._make_anew, self)
        self._open: Conversation | None = None
        self._stale: set[int] = set()
        """Ids of chats whose rows have to be redrawn."""
        self.refresh()
        watch.ticked.connect(self._on_looked)
        self._day = time.localtime().tm_yday
        self._disconnects = (
            chats.chat_added.connect(lambda _chat: self.refresh()),
            chats.chat_removed.connect(lambda _chat: self.refresh()),
            chats.chat_changed.connect(self._on_changed),
            chats.message_changed.connect(self._on_message_changed),
            chats.folders.changed.connect(self._on_folders_changed),
            chats.book.deleted_changed.connect(self.refresh),
        )

    def close(self) -> None:
        """Follow the services no longer."""
        for disconnect in self._disconnects:
            disconnect()
        self._settling.close()
        self._watch.ticked.disconnect(self._on_looked)
        self._ticker.unmark(self._redraw_stale)

    def show_rows(self, make: Callable[[], Iterable[Row]] | None) -> None:
        """Show other rows than the usual ones, made anew with every change; None: the usual ones."""
        self._make = make or self._usual
        self._limit = PAGE_ROWS
        self.beginResetModel()
        self.rows = self._first_rows()
        self.endResetModel()

    def refresh(self) -> None:
        """Make the rows anew and tell the view what has changed; at once, but not over and over in one turn."""
        self._settling.ask()

    def set_open(self, chat: Conversation | None) -> None:
        """Mark the chat that is in the active pane."""
        old, self._open = self._open, chat
        for changed in (old, chat):
            if changed is not None:
                self._redraw(changed)

    def index_of(self, item: Conversation | Folder) -> QModelIndex:
        """The row of a chat or folder; invalid if there is none, or it has not been scrolled to yet."""
        places = (place for place, row in enumerate(self.rows) if _item_of(row) is item)
        return self.index(next(places, -1))

    def reveal(self, item: Conversation | Folder) -> QModelIndex:
        """The same, with as many rows as that takes."""
        self._settling.settle()
        if not self.index_of(item).isValid() and self._has_more:
            rows = enumerate(self._make())
            place = next((place for place, row in rows if _item_of(row) is item), -1)
            self._show_more(place + 1)
        return self.index_of(item)

    def reveal_all(self) -> None:
        """Have every row there: what is asked of all is meant of those that were not scrolled to as well."""
        self._settling.settle()
        if self._has_more:
            self._show_more(sys.maxsize - 1)

    def chats_of(self, rows: Sequence[Row]) -> list[Conversation]:
        """The chats among rows; of several, those in closed folders too: they are marked with the folder."""
        chats: list[Conversation] = []
        for row in rows:
            if isinstance(row, ChatRow):
                chats.append(row.chat)
            elif isinstance(row, FolderRow) and len(rows) > 1 and not row.folder.is_open:
                chats += self._inside(row.folder)
        return chats

    def _inside(self, folder: Folder) -> list[Conversation]:
        """What the folder's row counts."""
        folders = self._service.folders.folders
        return [
            chat
            for chat in self._service.chats
            if chat.folder_id is not None and not (chat.is_pinned or chat.is_archived)
            if lies_within(folders, chat.folder_id, folder.folder_id)
        ]

    # what Qt asks

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self.rows)

    def canFetchMore(self, parent: _Index) -> bool:
        return not parent.isValid() and self._has_more

    def fetchMore(self, parent: _Index) -> None:
        if self.canFetchMore(parent):
            self._show_more(self._limit + PAGE_ROWS)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row = self.rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return _title_of(row)
            case Qt.ItemDataRole.ToolTipRole:
                return self._tip(row)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(row)
            case RowRole.ROW:
                return row
            case RowRole.WORDS if isinstance(row, ChatRow | RunRow):
                return self._words(row)
            case RowRole.IS_OPEN:
                return isinstance(row, ChatRow) and row.chat is self._open
            case RowRole.HUE if isinstance(row, ChatRow | RunRow):
                run = row.run if isinstance(row, RunRow) else self._watch.run_of(row.chat)
                return self._watch.others.hue(run)
        return None

    def setData(self, index: _Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        item = _item_of(self.rows[index.row()]) if index.isValid() else None
        if role != Qt.ItemDataRole.EditRole or item is None:
            return False
        self._rename(item, str(value))
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        flag = Qt.ItemFlag
        if not index.isValid():
            return flag.NoItemFlags
        row = self.rows[index.row()]
        if isinstance(row, HeaderRow):
            return flag.ItemIsDropEnabled  # the keyboard passes over it
        usual = flag.ItemIsEnabled | flag.ItemIsSelectable
        if isinstance(row, RunRow):
            return usual
        return usual | flag.ItemIsEditable | flag.ItemIsDragEnabled | flag.ItemIsDropEnabled

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def mimeTypes(self) -> list[str]:
        return [_MIME]

    def mimeData(self, indexes: Sequence[_Index]) -> QMimeData:
        rows = (self.rows[place] for place in sorted({index.row() for index in indexes}))
        data = QMimeData()
        data.setData(_MIME, " ".join(f"{row.key[0]}:{row.key[1]}" for row in rows).encode())
        return data

    def canDropMimeData(self, data: QMimeData, action: Qt.DropAction, *spot: Any) -> bool:
        return data.hasFormat(_MIME) and bool(spot[-1].isValid())

    def dropMimeData(self, data: QMimeData, action: Qt.DropAction, *spot: Any) -> bool:
        if not self.canDropMimeData(data, action, *spot):
            return False
        self.dropped.emit(self.dragged_rows(data), self.rows[spot[-1].row()])
        return False  # the services move them, the view shall not

    def dragged_rows(self, data: QMimeData) -> list[Row]:
        """The rows that are being dragged, from the top; none if it is something else."""
        keys = set(bytes(data.data(_MIME).data()).decode().split())
        return [row for row in self.rows if f"{row.key[0]}:{row.key[1]}" in keys]

    # what has changed

    def _first_rows(self) -> list[Row]:
        rows = list(itertools.islice(self._make(), self._limit + 1))
        self._has_more = len(rows) > self._limit
        self._places = {chat.chat_id: _place_of(chat) for chat in self._service.chats}
        return rows[: self._limit]

    def _make_anew(self) -> None:
        apply_changes(self, self.rows, self._first_rows())

    def _usual(self) -> Iterable[Row]:
        folders, programs = self._service.folders.folders, self._programs.rows
        return rows_of(self._service.chats, folders, programs, now_s=time.time())

    def _show_more(self, limit: int) -> None:
        self._limit = max(self._limit, limit)
        self._make_anew()

    def _words(self, row: ChatRow | RunRow) -> StatusWords:
        if isinstance(row, RunRow):
            return StatusWords(Mark.NONE, tr("Ended")) if row.has_ended else describe_run(row.run)
        reply = row.chat.running_message
        if reply is None:
            return describe_chat(row.chat, time.time())
        return describe_row(reply, self._watch.run_of(row.chat))

    def _tip(self, row: Row) -> str:
        """All that a row says, of which there may be no room for all."""
        if isinstance(row, HeaderRow):
            return ""
        lines = [_title_of(row)]
        if isinstance(row, ChatRow) and row.snippet is not None:
            lines.append(row.snippet.text)
        if isinstance(row, ChatRow | RunRow):
            lines.append(self._words(row).text)
        return "\n".join(lines)

    def _spoken(self, row: Row) -> str:
        title = _title_of(row)
        if isinstance(row, HeaderRow):
            return tr("{title}, heading").format(title=title)
        if isinstance(row, FolderRow):
            text = tr("{title}, open folder, {chats}")
            if not row.folder.is_open:
                text = tr("{title}, closed folder, {chats}")
            return text.format(title=title, chats=plural(row.num_chats, "1 chat", "{count} chats"))
        return tr("{title}, {state}").format(title=title, state=self._words(row).text)

    def _on_changed(self, chat: Conversation) -> None:
        if self._places.get(chat.chat_id) != _place_of(chat):
            self.refresh()
        self._mark_stale(chat.chat_id)

    def _on_folders_changed(self) -> None:
        self.refresh()
        self.dataChanged.emit(self.index(0), self.index(len(self.rows) - 1))

    def _on_message_changed(self, message: Message) -> None:
        if not message.status.is_alive:  # else its row is redrawn with every look
            self._mark_stale(message.chat_id)

    def _mark_stale(self, chat_id: int) -> None:
        self._stale.add(chat_id)
        self._ticker.mark(self._redraw_stale)

    def _on_looked(self) -> None:
        """The snapshot has changed what is said about what is in flight; after midnight the headings too."""
        had_programs = self._programs.rows
        self._programs.look(self._watch.snapshot, self._watch.others)
        if had_programs != self._programs.rows:
            self.refresh()
        today = time.localtime().tm_yday
        if today != self._day:
            self._day = today
            self.refresh()
        alive = (chat.chat_id for chat in self._service.chats if chat.running_message is not None)
        self._stale.update(alive)
        self._redraw_stale()

    def _redraw_stale(self) -> None:
        stale, self._stale = self._stale, set()
        if not stale:
            return
        for place, row in enumerate(self.rows):
            if isinstance(row, ChatRow) and row.chat.chat_id in stale:
                self.dataChanged.emit(self.index(place), self.index(place))

    def _redraw(self, chat: Conversation) -> None:
        for place, row in enumerate(self.rows):
            if isinstance(row, ChatRow) and row.chat is chat:
                self.dataChanged.emit(self.index(place), self.index(place))


def _place_of(chat: Conversation) -> _Place:
    return chat.is_pinned, chat.is_archived, chat.folder_id, chat.updated_s, chat.title


def _item_of(row: Row) -> Conversation | Folder | None:
    if isinstance(row, ChatRow):
        return row.chat
    return row.folder if isinstance(row, FolderRow) else None


def _title_of(row: Row) -> str:
    if isinstance(row, HeaderRow):
        return heading(row.section)
    if isinstance(row, RunRow):
        return row.name
    return row.folder.name if isinstance(row, FolderRow) else title_words(row.chat)
