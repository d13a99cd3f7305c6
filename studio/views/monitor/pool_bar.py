"""Pieces side by side on one bar: the pool in the status line, the memory of parked chats in the panel. GUI thread.

Drawn from what it is told; must not import services.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from studio.views.monitor.segments import Kind, Segment
from studio.views.monitor.stripes import brush_of
from studio.views.theme import Theme

_LEAST_PX = 2.0
"""So wide at least is whatever is there: 26 MB of 8 GB would not be seen."""


class PoolBar(QWidget):
    """Hovering names a piece; a screen reader is told the whole in a sentence."""

    def __init__(self, name: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._size = QSize(120, 8)
        self._segments: tuple[Segment, ...] = ()
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def set_size(self, width_px: int, height_px: int) -> None:
        """Be just so large."""
        self._size = QSize(width_px, height_px)
        self.setFixedSize(self._size)

    def show_segments(self, segments: tuple[Segment, ...], words: str) -> None:
        """Draw the pieces; nothing is drawn anew where nothing has changed."""
        if words != self.accessibleDescription():
            self.setAccessibleDescription(words)
        if segments != self._segments:
            self._segments = segments
            self.update()

    def segment_at(self, x: float) -> Segment | None:
        """The piece under a point."""
        return next((one for one, box in self._boxes() if box.left() <= x < box.right()), None)

    def sizeHint(self) -> QSize:
        return self._size

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            found = self.segment_at(event.pos().x())
            QToolTip.showText(
                event.globalPos(), found.words if found else self.accessibleDescription(), self
            )
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        shape = QPainterPath()
        radius = min(box.height() / 2, 4)
        shape.addRoundedRect(box, radius, radius)
        painter.setClipPath(shape)
        painter.fillRect(box, self._theme.colors.track)
        for segment, part in self._boxes():
            gap = 1 if part.width() > 2 * _LEAST_PX and segment.kind is Kind.HELD else 0
            brush = brush_of(segment, self._theme, self.devicePixelRatioF())
            painter.fillRect(part.adjusted(0, 0, -gap, 0), brush)
        painter.end()

    def _boxes(self) -> Iterator[tuple[Segment, QRectF]]:
        total = sum(one.size for one in self._segments)
        left = 0.0
        for one in self._segments:
            least = 0.0 if one.kind is Kind.FREE else _LEAST_PX
            width = min(max(self.width() * one.size / total, least), self.width() - left)
            right = QRectF(left, 0, width, self.height())
            yield one, self._mirrored(right)
            left += width

    def _mirrored(self, box: QRectF) -> QRectF:
        if self.layoutDirection() is Qt.LayoutDirection.LeftToRight:
            return box
        return QRectF(self.width() - box.right(), box.top(), box.width(), box.height())
