"""The KV pool as a map: a cell for every page or few, in the order of their owners. GUI thread; imports no services.

A click goes to the chat. With the keyboard, the arrow keys walk from piece to piece, each told to a screen reader, and
Enter goes to the chat.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from studio.views.monitor.segments import Kind, Segment
from studio.views.monitor.stripes import brush_of
from studio.views.speech import say
from studio.views.theme import Theme

_CELL_PX = 9
_GAP_PX = 2
_MOST_ROWS = 5
_NEXT_KEYS = frozenset({Qt.Key.Key_Right, Qt.Key.Key_Down})
_PREVIOUS_KEYS = frozenset({Qt.Key.Key_Left, Qt.Key.Key_Up})
_ENTER_KEYS = frozenset({Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space})


class PoolMap(QWidget):
    """`chosen` carries the id of a request whose piece was clicked."""

    chosen = Signal(str)

    def __init__(self, name: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._segments: tuple[Segment, ...] = ()
        self._ends: list[int] = []
        self._current: Segment | None = None
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_segments(self, segments: tuple[Segment, ...], words: str) -> None:
        """Draw the pieces; nothing is drawn anew where nothing has changed."""
        if words != self.accessibleDescription():
            self.setAccessibleDescription(words)
        if segments == self._segments:
            return
        before = sum(one.size for one in self._segments)
        self._segments = segments
        self._ends = list(accumulate(one.size for one in segments))
        if self._current is not None:
            ids = self._current.request_ids
            kind = self._current.kind
            same = (one for one in segments if one.request_ids == ids and one.kind is kind)
            self._current = next(same, None)
        if self._total != before:
            self._fit()
        self.update()

    @property
    def pages_per_cell(self) -> int:
        """1, or more where the pool is too large for a cell each."""
        room = self._most_columns * _MOST_ROWS
        return max(1, -(-self._total // room))

    def segment_at(self, at: QPoint) -> Segment | None:
        """The piece under a point."""
        column = at.x() * self._columns // max(1, self.width() + _GAP_PX)
        row = at.y() // (_CELL_PX + _GAP_PX)
        cell = row * self._columns + column
        is_inside = 0 <= column < self._columns and 0 <= cell < self._num_cells
        return self._segment_of(cell) if is_inside else None

    def sizeHint(self) -> QSize:
        rows = max(1, -(-self._num_cells // self._columns))
        return QSize(120, rows * (_CELL_PX + _GAP_PX))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            found = self.segment_at(event.pos())
            QToolTip.showText(event.globalPos(), found.words if found else "", self)
            return True
        return super().event(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        found = self.segment_at(event.position().toPoint())
        is_chat = found is not None and bool(found.request_ids)
        shape = Qt.CursorShape.PointingHandCursor if is_chat else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)
        self._mark(found if is_chat else None)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        if not self.hasFocus():
            self._mark(None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self.segment_at(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and found is not None:
            self._mark(found)
            self._choose()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in _NEXT_KEYS or key in _PREVIOUS_KEYS:
            self._step(1 if key in _NEXT_KEYS else -1)
        elif key in _ENTER_KEYS:
            self._choose()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._mark(None)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        scale = self.devicePixelRatioF()
        for segment, boxes in self._cells():
            is_current = segment is self._current
            painter.setPen(QPen(self._theme.colors.text, 1) if is_current else Qt.PenStyle.NoPen)
            painter.setBrush(brush_of(segment, self._theme, scale))
            painter.drawRects(boxes)
        if self.hasFocus() and self._current is None:
            painter.setPen(QPen(self._theme.colors.accent, 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.end()

    @property
    def _total(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def _most_columns(self) -> int:
        return max(1, (self.width() + _GAP_PX) // (_CELL_PX + _GAP_PX))

    @property
    def _columns(self) -> int:
        """As many as there is room for; fewer and wider ones where all cells fit in a row."""
        return max(1, min(self._most_columns, self._num_cells))

    @property
    def _num_cells(self) -> int:
        return -(-self._total // self.pages_per_cell)

    def _fit(self) -> None:
        self.setFixedHeight(self.sizeHint().height())

    def _segment_of(self, cell: int) -> Segment:
        """A cell of several pages shows the piece that has the first of them."""
        page = cell * self.pages_per_cell
        return next(one for one, end in zip(self._segments, self._ends, strict=True) if page < end)

    def _cells(self) -> Iterator[tuple[Segment, list[QRect]]]:
        per_cell, columns = self.pages_per_cell, self._columns
        width = self.width() + _GAP_PX
        edges = [column * width // columns for column in range(columns + 1)]
        first = 0
        for segment, end in zip(self._segments, self._ends, strict=True):
            after = -(-end // per_cell)  # a cell of several pages shows who has the first of them
            if after > first:
                yield segment, [_box(edges, *divmod(cell, columns)) for cell in range(first, after)]
            first = max(first, after)

    def _step(self, by: int) -> None:
        if not self._segments:
            return
        places = {id(one): place for place, one in enumerate(self._segments)}
        now = places.get(id(self._current), -1 if by > 0 else len(self._segments))
        self._mark(self._segments[min(max(now + by, 0), len(self._segments) - 1)])
        if self._current is not None:
            say(self, self._current.words)
            QToolTip.showText(self.mapToGlobal(QPoint(0, self.height())), self._current.words, self)

    def _mark(self, segment: Segment | None) -> None:
        if segment is not self._current:
            self._current = segment
            self.update()

    def _choose(self) -> None:
        if self._current is not None and self._current.kind is Kind.HELD:
            self.chosen.emit(self._current.request_ids[0])


def _box(edges: list[int], row: int, column: int) -> QRect:
    """A cell; `edges`: where the columns begin, and where one more would, so that they reach from side to side."""
    left, right = edges[column], edges[column + 1]
    return QRect(left, row * (_CELL_PX + _GAP_PX), right - left - _GAP_PX, _CELL_PX)
