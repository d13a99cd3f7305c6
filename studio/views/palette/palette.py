"""The command palette: a field and a list over the window; a few letters and Enter do anything. GUI thread.

It lies inside the window rather than being one, so that it stands where it belongs on every desktop. It goes when the
focus goes. Must not import services.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QFontMetrics,
    QKeyEvent,
    QPainter,
    QStandardItem,
    QStandardItemModel,
)
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from studio.views.palette.entries import Entry, matching
from studio.views.shadow import cast_shadow
from studio.views.theme import Theme
from studio.views.words import plural, tr

_WIDTH_PX = 600
_TOP_PX = 84
"""Below the bar with the chat's name."""
_MOST_ROWS = 10
_PAD_PX = 12
_MOST_SHOWN = 200
_ENTRY = int(Qt.ItemDataRole.UserRole) + 1
_Index = QModelIndex | QPersistentModelIndex


class Palette(QFrame):
    """`chosen` carries the entry; it has been closed by then."""

    chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._window = parent
        self.setObjectName("palette")
        self.setAccessibleName(tr("All commands"))
        cast_shadow(self)
        self.hide()
        self._entries: Sequence[Entry] = ()
        self._recent: Sequence[str] = ()
        self._before: QWidget | None = None
        self.field = _Field(self)
        self.field.textChanged.connect(self._fill)
        self.field.moved.connect(self._move)
        self.field.entered.connect(self._choose)
        self.field.left.connect(self.leave)
        self._model = QStandardItemModel(self)
        self.rows = QListView(self)
        self.rows.setObjectName("paletteRows")
        self.rows.setAccessibleName(tr("All commands"))
        self.rows.setModel(self._model)
        self.rows.setItemDelegate(_Row(theme, self.rows))
        self.rows.setUniformItemSizes(True)
        self.rows.setMouseTracking(True)
        self.rows.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.rows.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.rows.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.rows.entered.connect(self.rows.setCurrentIndex)
        self.rows.clicked.connect(lambda _index: self._choose())
        self._nothing = QLabel(tr("Nothing has these letters in its name"), self)
        self._nothing.setObjectName("secondary")
        self._nothing.setMargin(_PAD_PX)
        self._column = layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 8, 8, 8)
        layout.setSpacing(8)
        layout.addWidget(self.field)
        layout.addWidget(self._nothing)
        layout.addWidget(self.rows)
        parent.installEventFilter(self)

    def open_with(self, entries: Sequence[Entry], recent: Sequence[str]) -> None:
        """Offer these, the recent ones first, and take the focus."""
        self._entries, self._recent = entries, recent
        self._before = self.window().focusWidget() if self.isHidden() else self._before
        self.field.clear()
        self._fill("")
        self._place()
        self.show()
        self.raise_()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def leave(self) -> None:
        """Close, and give the focus back."""
        if self.isHidden():
            return
        self.hide()
        if self._before is not None:
            self._before.setFocus(Qt.FocusReason.OtherFocusReason)
        self._before = None

    @property
    def shown(self) -> list[Entry]:
        """What is in the list, in its order."""
        return [self._model.index(row, 0).data(_ENTRY) for row in range(self._model.rowCount())]

    def eventFilter(self, watched: QWidget, event: QEvent) -> bool:  # type: ignore[override]
        if event.type() == QEvent.Type.Resize and not self.isHidden():
            self._place()
        return super().eventFilter(watched, event)

    def _fill(self, typed: str) -> None:
        self._model.clear()
        found = matching(self._entries, typed, self._recent)
        for entry in found[:_MOST_SHOWN]:
            item = QStandardItem(entry.text)
            item.setData(entry, _ENTRY)
            item.setAccessibleText(", ".join(filter(None, (entry.text, entry.kind, entry.keys))))
            self._model.appendRow(item)
        self._nothing.setHidden(bool(found))
        self.rows.setHidden(not found)
        self.rows.setCurrentIndex(self._model.index(0, 0))
        self.field.setAccessibleDescription(plural(len(found), "1 found", "{count} found"))
        self._place()

    def _place(self) -> None:
        parent = self._window
        rows = min(_MOST_ROWS, max(1, self._model.rowCount()))
        height = rows * max(1, self.rows.sizeHintForRow(0)) + 2
        self.rows.setFixedHeight(min(height, max(80, parent.height() - 2 * _TOP_PX - 48)))
        em = self.fontMetrics().height()
        width = min(max(_WIDTH_PX, 32 * em), parent.width() - 48)
        self.setFixedWidth(width)
        self._column.activate()
        self.adjustSize()
        self.move((parent.width() - width) // 2, _TOP_PX)

    def _move(self, by: int) -> None:
        number = self._model.rowCount()
        if number:
            row = (self.rows.currentIndex().row() + by) % number
            self.rows.setCurrentIndex(self._model.index(row, 0))

    def _choose(self) -> None:
        entry: Entry | None = self.rows.currentIndex().data(_ENTRY)
        if entry is not None:
            self.leave()
            self.chosen.emit(entry)


class _Field(QLineEdit):
    """Keeps the keys that move in the list, and Escape, which is the window's own shortcut otherwise."""

    moved = Signal(int)
    entered = Signal()
    left = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("paletteField")
        self.setPlaceholderText(tr("Type a command, a chat or a setting"))
        self.setAccessibleName(tr("Type a command, a chat or a setting"))
        page = _MOST_ROWS - 1
        self._does: dict[int, Callable[[], None]] = {
            Qt.Key.Key_Down: lambda: self.moved.emit(1),
            Qt.Key.Key_Up: lambda: self.moved.emit(-1),
            Qt.Key.Key_PageDown: lambda: self.moved.emit(page),
            Qt.Key.Key_PageUp: lambda: self.moved.emit(-page),
            Qt.Key.Key_Return: self.entered.emit,
            Qt.Key.Key_Enter: self.entered.emit,
            Qt.Key.Key_Escape: self.left.emit,
            Qt.Key.Key_Tab: lambda: self.moved.emit(1),
            Qt.Key.Key_Backtab: lambda: self.moved.emit(-1),
        }

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.key() in self._does:
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress:
                self._does[event.key()]()
                return True
        return super().event(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() not in (
            Qt.FocusReason.PopupFocusReason,
            Qt.FocusReason.ActiveWindowFocusReason,
        ):
            self.left.emit()


class _Row(QStyledItemDelegate):
    """One entry: its name, where it belongs, and at the right its keys."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        height = QFontMetrics(self._theme.font(self._theme.ui_px)).height()
        return QSize(100, height + _PAD_PX)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        entry: Entry = index.data(_ENTRY)
        colors = self._theme.colors
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # a name has its own
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.selected)
            painter.drawRoundedRect(option.rect, 6, 6)
        room = option.rect.adjusted(_PAD_PX, 0, -_PAD_PX, 0)
        small = QFontMetrics(self._theme.font(self._theme.small_px))
        keys_px = small.horizontalAdvance(entry.keys) + _PAD_PX if entry.keys else 0
        kind_px = min(small.horizontalAdvance(entry.kind), room.width() // 3)
        main = self._theme.font(self._theme.ui_px)
        left = room.width() - keys_px - kind_px - _PAD_PX
        text = QFontMetrics(main).elidedText(entry.text, Qt.TextElideMode.ElideRight, left)
        painter.setFont(main)
        painter.setPen(colors.text)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
        painter.setFont(self._theme.font(self._theme.small_px))
        painter.setPen(colors.secondary)
        after = room.left() + QFontMetrics(main).horizontalAdvance(text) + _PAD_PX
        kind = small.elidedText(entry.kind, Qt.TextElideMode.ElideRight, kind_px + 1)
        box = QRect(after, room.top(), kind_px + 2, room.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, kind)
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(room, right, entry.keys)
        painter.restore()
