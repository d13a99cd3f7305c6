"""Lays widgets out in lines, as words in a paragraph. GUI thread; must not import services."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """As high as its width makes it. Hidden widgets take no room."""

    def __init__(self, parent: QWidget, gap_px: int) -> None:
        super().__init__(parent)
        self.setContentsMargins(0, 0, 0, 0)
        self._gap_px = gap_px
        self._items: list[QLayoutItem] = []

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._arrange(QRect(0, 0, width, 0), moves=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._arrange(rect, moves=True)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size

    def _arrange(self, rect: QRect, *, moves: bool) -> int:
        """Put everything in its place; the height that it takes."""
        left, top, line = rect.left(), rect.top(), 0
        for item in self._items:
            if item.isEmpty():
                continue
            size = _within(item, max(1, rect.width()))
            if left > rect.left() and left + size.width() > rect.right() + 1:
                left, top, line = rect.left(), top + line + self._gap_px, 0
            if moves:
                item.setGeometry(QRect(QPoint(left, top), size))
            left += size.width() + self._gap_px
            line = max(line, size.height())
        return top + line - rect.top()


def _within(item: QLayoutItem, width: int) -> QSize:
    """The size of an item that is to be no wider."""
    size = item.sizeHint()
    if size.width() <= width:
        return size
    return QSize(width, item.heightForWidth(width) if item.hasHeightForWidth() else size.height())
