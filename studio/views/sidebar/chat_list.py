"""The list of chats as a widget: picking, selecting several, the keyboard, dragging into folders. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QItemSelection, QItemSelectionModel, QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QApplication, QListView, QWidget

from studio.models.chat import Conversation
from studio.views.sidebar.chat_list_model import RowRole
from studio.views.sidebar.conversation_row import ConversationRow
from studio.views.sidebar.list_rows import ChatRow, FolderRow, HeaderRow, Row
from studio.views.theme import Theme
from studio.views.words import tr

_Flag = QItemSelectionModel.SelectionFlag


class ChatList(QListView):
    """One click or Enter picks; Ctrl and Shift select several."""

    picked = Signal(object)
    """A row."""
    delete_pressed = Signal()
    undo_pressed = Signal()
    menu_wanted = Signal(object, QPoint)
    """The rows that are meant, and where on the screen the menu belongs."""
    fold_wanted = Signal(object, bool)
    """A folder's row, and whether it is to be open."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("conversations")
        self.setAccessibleName(tr("Chats"))
        self.setMouseTracking(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setDragDropMode(QAbstractItemView.DragDropMode.DragDrop)
        self.setDefaultDropAction(Qt.DropAction.MoveAction)
        self.setDragDropOverwriteMode(True)
        self._painter = ConversationRow(theme, self)
        self.setItemDelegate(self._painter)
        self.clicked.connect(self._on_clicked)

    def selected_rows(self) -> list[Row]:
        """The rows that are selected, from the top; else the one that the keyboard stands on."""
        indexes = sorted(self.selectedIndexes(), key=lambda index: index.row())
        rows = [index.data(RowRole.ROW) for index in indexes]
        current = self.currentIndex().data(RowRole.ROW)
        return rows or ([current] if current is not None else [])

    def selected_chats(self) -> list[Conversation]:
        """The chats among them."""
        return [row.chat for row in self.selected_rows() if isinstance(row, ChatRow)]

    def go_to(self, index: QModelIndex) -> None:
        """Let the keyboard start from a row, nothing else being selected."""
        self.selectionModel().setCurrentIndex(index, _Flag.ClearAndSelect)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        before, now = self._painter.num_selected, len(self.selectedIndexes())
        self._painter.num_selected = now
        if (before > 1) != (now > 1):
            self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.state() == QAbstractItemView.State.EditingState:
            return  # Enter ends the editing; a line edit passes it on all the same
        row = self.currentIndex().data(RowRole.ROW)
        has_modifier = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and row is not None:
            self.picked.emit(row)
        elif event.key() == Qt.Key.Key_Delete and not has_modifier:
            self.delete_pressed.emit()
        elif event.matches(QKeySequence.StandardKey.Undo):
            self.undo_pressed.emit()
        elif event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right) and not has_modifier:
            self._fold(row, is_open=event.key() == Qt.Key.Key_Right)
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if event.reason() is QContextMenuEvent.Reason.Mouse:
            index, spot = self.indexAt(event.pos()), event.globalPos()
        else:
            index = self.currentIndex()
            spot = self.viewport().mapToGlobal(self.visualRect(index).center())
        if not index.isValid() or isinstance(index.data(RowRole.ROW), HeaderRow):
            return
        if not self.selectionModel().isSelected(index):
            self.go_to(index)
        self.menu_wanted.emit(self.selected_rows(), spot)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() is not Qt.FocusReason.MouseFocusReason:
            self.scrollTo(self.currentIndex())  # or nothing on screen would show the focus

    def _on_clicked(self, index: QModelIndex) -> None:
        selects = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
        row = index.data(RowRole.ROW)
        if not QApplication.keyboardModifiers() & selects and not isinstance(row, HeaderRow):
            self.picked.emit(row)

    def _fold(self, row: Row | None, *, is_open: bool) -> None:
        """Right opens a folder, Left closes it or goes from a chat to its folder."""
        if isinstance(row, FolderRow):
            self.fold_wanted.emit(row, is_open)
        elif isinstance(row, ChatRow) and row.depth and not is_open:
            place = self.currentIndex().row()
            while place and not isinstance(
                self.model().index(place, 0).data(RowRole.ROW), FolderRow
            ):
                place -= 1
            self.go_to(self.model().index(place, 0))
