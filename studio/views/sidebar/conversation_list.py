"""The side bar: a new chat, a search over names and texts, the list of chats, the archive. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPoint, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from studio.models.chat import Conversation
from studio.models.folder import Folder
from studio.views.actions import CommandId
from studio.views.context import Context
from studio.views.icon_button import IconButton
from studio.views.key_hints import hint
from studio.views.settling import Settling
from studio.views.sidebar.chat_list import ChatList
from studio.views.sidebar.chat_list_model import ChatListModel
from studio.views.sidebar.chat_menu import ChatMenu
from studio.views.sidebar.list_rows import ChatRow, FolderRow, Row, Section, section_rows
from studio.views.sidebar.list_search import ListSearch
from studio.views.sidebar.program_runs import RunRow
from studio.views.sidebar.row_actions import RowActions
from studio.views.sidebar.search_field import SearchField
from studio.views.word_button import WordButton
from studio.views.words import count, tr

WIDTH_PX = 280


class Sidebar(QWidget):
    """`chosen` carries the chat to be shown, and the FoundPlace in it that was looked for, or None."""

    chosen = Signal(object, object)
    new_wanted = Signal()
    temporary_wanted = Signal()
    pool_wanted = Signal()
    """A program's request was picked."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH_PX)
        self._chats = context.services.chats
        self._settling = Settling(self._refresh_archive, self)
        self._open: Conversation | None = None
        self._shows_archive = False
        self.actions_of_rows = do = RowActions(context, self)
        self._field = SearchField(self)
        self._search = ListSearch(self._chats.search, context.tasks, self)
        self._model = ChatListModel(
            self._chats, context.watch, context.figures, rename=do.set_name, parent=self
        )
        self._list = ChatList(context.theme, self)
        self._list.setModel(self._model)
        self._menu = ChatMenu(do, self)
        self._nothing = QLabel(self)
        self._nothing.setObjectName("secondary")
        self._nothing.setWordWrap(True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._nothing.setContentsMargins(16, 8, 16, 8)
        self._nothing.hide()
        self.foot = WordButton("archive", "", self)
        self.foot.setObjectName("archive")
        self.foot.clicked.connect(self.toggle_archive)
        self._connect(do)
        self._lay_out()
        self._refresh_archive()

    def close_sidebar(self) -> None:
        """Follow the services no longer."""
        self._model.close()
        self._search.close()
        self._settling.close()
        for disconnect in self._disconnects:
            disconnect()

    def set_open(self, chat: Conversation | None, *, can_split: bool) -> None:
        """Mark the chat in the active pane, and let the keyboard start from it."""
        self._menu.can_split = can_split
        if chat is self._open:
            return  # the keyboard may have gone elsewhere in the list since
        self._open = chat
        self._model.set_open(chat)
        if chat is not None:
            self._list.go_to(self._model.index_of(chat))

    def focus_search(self) -> None:
        self._field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._field.selectAll()

    def selected_chats(self) -> list[Conversation]:
        """The chats that are selected, if the list has the focus."""
        return self._list.selected_chats() if self._list.hasFocus() else []

    def edit_title(self, item: Conversation | Folder) -> None:
        """Let the user write another name, in the row."""
        index = self._model.reveal(item)
        if index.isValid():
            self._list.setFocus(Qt.FocusReason.OtherFocusReason)
            self._list.go_to(index)
            self._list.scrollTo(index)
            self._list.edit(index)

    def edit_selected(self) -> bool:
        """The same for the folder that the keyboard stands on; False if it stands on none."""
        rows = self._list.selected_rows() if self._list.hasFocus() else []
        if len(rows) == 1 and isinstance(rows[0], FolderRow):
            self.edit_title(rows[0].folder)
            return True
        return False

    def toggle_archive(self) -> None:
        """Show what was archived and deleted instead of the chats, or the chats again."""
        self._shows_archive = not self._shows_archive
        self._field.clear()
        self._show_rows()
        self._refresh_archive()

    def _connect(self, do: RowActions) -> None:
        self._field.textChanged.connect(self._search.look_for)
        self._field.down_pressed.connect(self._enter_list)
        self._field.returnPressed.connect(self._pick_first)
        self._search.changed.connect(self._show_rows)
        self._list.picked.connect(self._on_picked)
        self._list.delete_pressed.connect(self._on_delete)
        self._list.menu_wanted.connect(self._open_menu)
        self._list.fold_wanted.connect(
            lambda row, is_open: do.set_open(row.folder, is_open=is_open)
        )
        self._list.shift_wanted.connect(do.shift_folder)
        self._list.placed.connect(
            lambda rows, folder, is_after: do.place_folders(rows, folder, is_after=is_after)
        )
        self._model.dropped.connect(do.drop)
        do.found.connect(lambda folder: self._list.go_to(self._model.reveal(folder)))
        do.rename_wanted.connect(self.edit_title)
        do.chosen.connect(lambda chat: self.chosen.emit(chat, None))
        chats = self._chats
        self._disconnects = (
            chats.chat_changed.connect(lambda _chat: self._settling.ask()),
            chats.book.deleted_changed.connect(self._settling.ask),
        )

    def _lay_out(self) -> None:
        new = WordButton("plus", tr("New chat"), self)
        new.setObjectName("newChat")
        hint(new, tr("New chat"), CommandId.NEW_CHAT)
        new.clicked.connect(self.new_wanted)
        temporary = IconButton("temporary", tr("Temporary chat"), self)
        hint(temporary, tr("Temporary chat: nothing of it is saved"), CommandId.NEW_TEMPORARY)
        temporary.clicked.connect(self.temporary_wanted)
        folder = IconButton("folder", tr("New folder"), self)
        hint(folder, tr("New folder"), CommandId.NEW_FOLDER)
        folder.clicked.connect(lambda: self.actions_of_rows.new_folder())
        buttons = QHBoxLayout()
        buttons.setSpacing(4)
        buttons.addWidget(new, 1)
        buttons.addWidget(temporary)
        buttons.addWidget(folder)
        head = QVBoxLayout()
        head.setContentsMargins(12, 12, 12, 8)
        head.setSpacing(8)
        head.addLayout(buttons)
        head.addWidget(self._field)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self._nothing)
        layout.addWidget(self._list, 1)
        layout.addWidget(self.foot)

    def _show_rows(self) -> None:
        """What the field or the archive asks for."""
        if self._field.text().strip():
            self._model.show_rows(self._search.rows)
        else:
            self._model.show_rows(self._archive_rows if self._shows_archive else None)
            if self._open is not None:
                self._list.go_to(self._model.index_of(self._open))
        is_empty = self._model.rowCount() == 0
        words = tr("Nothing is archived or deleted.") if self._shows_archive else ""
        if self._field.text().strip():
            words = tr("No chat has this in its name or text.") if self._search.is_complete else ""
        self._nothing.setText(words)
        self._nothing.setVisible(is_empty and bool(words))

    def _archive_rows(self) -> list[Row]:
        archived = [chat for chat in self._chats.chats if chat.is_archived]
        deleted = self._chats.book.deleted
        return section_rows(Section.ARCHIVED, archived) + section_rows(Section.DELETED, deleted)

    def _refresh_archive(self) -> None:
        number = sum(1 for chat in self._chats.chats if chat.is_archived)
        number += len(self._chats.book.deleted)
        self.foot.setVisible(self._shows_archive or number > 0)
        words = tr("Archive and deleted  {number}").format(number=count(number))
        self.foot.setText(tr("Back to the chats") if self._shows_archive else words)
        self.foot.set_icon_name("back" if self._shows_archive else "archive")

    def _enter_list(self) -> None:
        self._list.go_to(self._first_chat())
        self._list.setFocus(Qt.FocusReason.TabFocusReason)

    def _pick_first(self) -> None:
        index = self._first_chat()
        if index.isValid():
            self._on_picked(self._model.rows[index.row()])

    def _first_chat(self) -> QModelIndex:
        for place, row in enumerate(self._model.rows):
            if isinstance(row, ChatRow):
                return self._model.index(place)
        return self._model.index(-1)

    def _open_menu(self, rows: list[Row], spot: QPoint) -> None:
        chats = self._model.chats_of(rows)
        if chats:
            self._menu.open_for_chats(chats, spot)
        elif isinstance(rows[0], FolderRow):
            self._menu.open_for_folder(rows[0].folder, spot)
        elif isinstance(rows[0], RunRow):
            self._menu.open_for_run(rows[0].run, spot)

    def _on_picked(self, row: Row) -> None:
        match row:
            case FolderRow(folder=folder):
                self.actions_of_rows.set_open(folder, is_open=not folder.is_open)
            case RunRow():
                self.pool_wanted.emit()
            case ChatRow(chat=chat) if chat.deleted_s is not None:
                index = self._model.index_of(chat)
                spot = self._list.visualRect(index).center()
                self._menu.open_for_chats([chat], self._list.viewport().mapToGlobal(spot))
            case ChatRow(chat=chat):
                self.chosen.emit(chat, self._search.place_of(row))

    def _on_delete(self) -> None:
        """Delete takes chats away with a way back; a folder too, and keeps its chats."""
        rows = self._list.selected_rows()
        chats = self._model.chats_of(rows)
        if chats and all(chat.deleted_s is not None for chat in chats):
            self.actions_of_rows.delete_for_good(chats)
        elif chats:
            self.actions_of_rows.delete(chats)
        elif rows and isinstance(rows[0], FolderRow):
            self.actions_of_rows.delete_folder(rows[0].folder)
