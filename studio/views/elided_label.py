"""One line of text, or a few, with an ellipsis where there is no room for all of it. GUI thread.

Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QFontMetrics, QHelpEvent, QPainter, QPaintEvent, QTextLayout
from PySide6.QtWidgets import QLabel, QWidget

from studio.views.status_words import SEPARATOR, joined
from studio.views.tips import show_tip

_LEAST_PX = 40


class ElidedLabel(QLabel):
    """A label that never makes its parent wider; the whole text is its tool tip and what a screen reader says."""

    def __init__(
        self,
        parent: QWidget,
        elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight,
        *,
        least_px: int = _LEAST_PX,
    ) -> None:
        super().__init__(parent)
        self._elide = elide
        self._least_px = least_px
        self.setTextFormat(Qt.TextFormat.PlainText)

    def set_text(self, text: str) -> None:
        if text != self.text():
            self.setText(text)
            self.setToolTip(text)

    def event(self, event: QEvent) -> bool:
        return show_whole(event, self) or super().event(event)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint().boundedTo(QSize(self._least_px, 1 << 20))

    def shown(self, width: int) -> str:
        """As much of the text as that width has room for."""
        return self.fontMetrics().elidedText(self.text(), self._elide, width)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # a name has its own
        room = self.contentsRect()
        text = self.shown(room.width())
        painter.setPen(self.palette().windowText().color())
        painter.drawText(room, self.alignment() | Qt.AlignmentFlag.AlignVCenter, text)
        painter.end()


def show_whole(event: QEvent, label: QLabel) -> bool:
    """Show the tool tip of a label that is asked for one; whether it was that."""
    if event.type() != QEvent.Type.ToolTip or not isinstance(event, QHelpEvent):
        return False
    show_tip(event, label.toolTip(), label)
    return True


class WholeLabel(QLabel):
    """Seen whole or not at all."""

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.width() >= self.sizeHint().width():
            super().paintEvent(event)


class ElidedFigures(ElidedLabel):
    """Of several figures each is seen whole, or not at all."""

    def shown(self, width: int) -> str:
        return whole_parts(self.text(), self.fontMetrics(), width)


def whole_parts(text: str, metrics: QFontMetrics, width: int) -> str:
    """Of parts with a dot between them as many as that width has room for, the first one elided if need be."""
    parts = text.split(SEPARATOR)
    while True:
        shown = metrics.elidedText(joined(*parts), Qt.TextElideMode.ElideRight, width)
        if len(parts) == 1 or shown == joined(*parts):
            return shown
        parts.pop()


class ElidedLines(QLabel):
    """The same over a fixed number of lines, and always as high as these, whatever the text."""

    def __init__(self, num_lines: int, parent: QWidget) -> None:
        super().__init__(parent)
        self._num_lines = num_lines
        self.setTextFormat(Qt.TextFormat.PlainText)

    def set_text(self, text: str) -> None:
        if text != self.text():
            self.setText(text)
            self.setToolTip(text)

    def event(self, event: QEvent) -> bool:
        return show_whole(event, self) or super().event(event)

    def sizeHint(self) -> QSize:
        return QSize(_LEAST_PX, self._num_lines * self.fontMetrics().lineSpacing())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # a name has its own
        painter.setPen(self.palette().windowText().color())
        room, line_px = self.contentsRect(), self.fontMetrics().lineSpacing()
        for number, text in enumerate(self._lines(room.width())):
            line = room.adjusted(0, number * line_px, 0, 0)
            painter.drawText(line, Qt.AlignmentFlag.AlignTop, text)
        painter.end()

    def _lines(self, width_px: int) -> list[str]:
        """The text as it is broken at this width; the last line has all that is left, elided."""
        text = self.text()
        lines: list[str] = []
        layout = QTextLayout(text, self.font())
        layout.beginLayout()
        while (made := layout.createLine()).isValid() and len(lines) < self._num_lines - 1:
            made.setLineWidth(width_px)
            lines.append(text[made.textStart() : made.textStart() + made.textLength()].rstrip())
        rest = text[made.textStart() :] if made.isValid() else ""
        layout.endLayout()
        elided = self.fontMetrics().elidedText(rest, Qt.TextElideMode.ElideRight, width_px)
        return [*lines, elided] if elided else lines
