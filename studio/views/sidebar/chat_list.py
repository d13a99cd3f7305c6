"""The list of chats as a widget: picking, selecting several, the keyboard, dragging into folders and between them.

GUI thread.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QContextMenuEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QAbstractItemView, QApplication, QListView, QWidget

from studio.models.chat import Conversation
from studio.views.sidebar.chat_list_model import ChatListModel, RowRole
from studio.views.sidebar.conversation_row import ConversationRow
from studio.views.sidebar.list_rows import ChatRow, FolderRow, HeaderRow, Row
from studio.views.theme import Theme
from studio.views.words import tr

_Flag = QItemSelectionModel.SelectionFlag
_Index = QModelIndex | QPersistentModelIndex

_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_EDGE = 0.3
"""So much of a folder's row, above and below, means between it and its neighbour; the rest means into it."""


class ChatList(QListView):
    """One click or Enter picks; Ctrl and Shift select several."""

    picked = Signal(object)
    """A row."""
    delete_pressed = Signal()
    menu_wanted = Signal(object, QPoint)
    """The rows that are meant, and where on the screen the menu belongs."""
    fold_wanted = Signal(object, bool)
    """A folder's row, and whether it is to be open."""
    shift_wanted = Signal(object, int)
    """A folder that is to go up (-1) or down (1)."""
    placed = Signal(object, object, bool)
    """Rows of folders that were dragged between others, the folder they were dropped beside, and whether after it."""

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
        self._line: tuple[int, bool] | None = None
        """The folder's row that a dragged folder would be dropped beside, and whether after it."""
        self._theme = theme
        self._painter = ConversationRow(theme, self)
        self.setItemDelegate(self._painter)
        self.clicked.connect(self._on_clicked)

    def selected_rows(self) -> list[Row]:
        """The rows that are selected, from the top; else the one that the keyboard stands on."""
        current = self.currentIndex().data(RowRole.ROW)
        return self._selected() or ([current] if current is not None else [])

    def selected_chats(self) -> list[Conversation]:
        """The chats among them, as `chats_of` counts."""
        return self._chat_model.chats_of(self.selected_rows())

    def go_to(self, index: QModelIndex) -> None:
        """Let the keyboard start from a row, nothing else being selected."""
        self.selectionModel().setCurrentIndex(index, _Flag.ClearAndSelect)

    def selectionChanged(self, selected: QItemSelection, deselected: QItemSelection) -> None:
        super().selectionChanged(selected, deselected)
        before, now = self._painter.num_selected, len(self._selected())
        self._painter.num_selected = now
        if (before > 1) != (now > 1):
            self.viewport().update()

    def dataChanged(
        self, top_left: _Index, bottom_right: _Index, roles: Sequence[int] = ()
    ) -> None:
        """Draw these rows anew. QListView would ask every row of the list for its height, which none has changed."""
        QAbstractItemView.dataChanged(self, top_left, bottom_right, list(roles))

    def selectAll(self) -> None:
        self._chat_model.reveal_all()
        super().selectAll()

    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        if action == QAbstractItemView.CursorAction.MoveEnd:
            self._chat_model.reveal_all()
        return super().moveCursor(action, modifiers)

    def keyboardSearch(self, search: str) -> None:
        self._chat_model.reveal_all()
        super().keyboardSearch(search)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self.state() == QAbstractItemView.State.EditingState:
            return  # Enter ends the editing; a line edit passes it on all the same
        row = self.currentIndex().data(RowRole.ROW)
        has_modifier = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and row is not None:
            self.picked.emit(row)
        elif event.key() == Qt.Key.Key_Delete and not has_modifier:
            self.delete_pressed.emit()
        elif event.key() in _STEPS and has_modifier == Qt.KeyboardModifier.AltModifier:
            if isinstance(row, FolderRow):
                self.shift_wanted.emit(row.folder, _STEPS[Qt.Key(event.key())])
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

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        super().dragMoveEvent(event)
        self._show_line(self._edge_at(event))
        if self._line is not None:
            event.acceptProposedAction()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self._show_line(None)

    def dropEvent(self, event: QDropEvent) -> None:
        edge = self._edge_at(event)
        self._show_line(None)
        if edge is None:
            super().dropEvent(event)
            return
        target = self.model().index(edge[0], 0).data(RowRole.ROW)
        self.placed.emit(self._dragged(event), target.folder, edge[1])
        event.setDropAction(
            Qt.DropAction.IgnoreAction
        )  # the services move them, the view shall not
        event.accept()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.hasFocus() and not self.currentIndex().isValid():
            self._paint_focus()
        if self._line is not None:
            row, is_after = self._line
            box = self.visualRect(self.model().index(row, 0))
            y = box.bottom() if is_after else box.top()
            painter = QPainter(self.viewport())
            painter.setPen(QPen(self._theme.colors.accent, 2))
            painter.drawLine(box.left() + 8, y, box.right() - 8, y)
            painter.end()

    def _paint_focus(self) -> None:
        """Around the whole list, where the keyboard stands on no row of it."""
        painter = QPainter(self.viewport())
        painter.setPen(QPen(self._theme.colors.accent, 1))
        painter.drawRoundedRect(self.viewport().rect().adjusted(8, 1, -9, -2), 8, 8)
        painter.end()

    @property
    def _chat_model(self) -> ChatListModel:
        model = self.model()
        assert isinstance(model, ChatListModel)
        return model

    def _selected(self) -> list[Row]:
        """By ranges: thousands may be selected, and Qt would ask of each whether it can be."""
        rows = self._chat_model.rows
        ranges = sorted(
            (one.top(), one.bottom()) for one in self.selectionModel().selection().toList()
        )
        marked = (row for top, bottom in ranges for row in rows[top : bottom + 1])
        return [row for row in marked if not isinstance(row, HeaderRow)]

    def _dragged(self, event: QDropEvent) -> list[Row]:
        return self._chat_model.dragged_rows(event.mimeData())

    def _edge_at(self, event: QDropEvent) -> tuple[int, bool] | None:
        """The folder's row that dragged folders would be dropped beside; None if into it, or onto something else."""
        at = event.position().toPoint()
        index, dragged = self.indexAt(at), self._dragged(event)
        row = index.data(RowRole.ROW)
        if not isinstance(row, FolderRow) or not dragged or row in dragged:
            return None
        if not all(isinstance(one, FolderRow) for one in dragged):
            return None
        box = self.visualRect(index)
        share = (at.y() - box.top()) / max(1, box.height())
        if _EDGE <= share <= 1 - _EDGE:
            return None
        return index.row(), share > 0.5

    def _show_line(self, line: tuple[int, bool] | None) -> None:
        if line != self._line:
            self._line = line
            self.viewport().update()

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
