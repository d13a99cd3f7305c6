"""One line of text with an ellipsis where there is no room for all of it. GUI thread; must not import services."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QWidget

from studio.views.status_words import SEPARATOR, joined

_LEAST_PX = 40


class ElidedLabel(QLabel):
    """A label that never makes its parent wider; the whole text is its tool tip and what a screen reader says."""

    def __init__(
        self, parent: QWidget, elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight
    ) -> None:
        super().__init__(parent)
        self._elide = elide
        self.setTextFormat(Qt.TextFormat.PlainText)

    def set_text(self, text: str) -> None:
        if text != self.text():
            self.setText(text)
            self.setToolTip(text)

    def minimumSizeHint(self) -> QSize:
        return QSize(_LEAST_PX, super().minimumSizeHint().height())

    def shown(self, width: int) -> str:
        """As much of the text as that width has room for."""
        return self.fontMetrics().elidedText(self.text(), self._elide, width)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        room = self.contentsRect()
        text = self.shown(room.width())
        painter.setPen(self.palette().windowText().color())
        painter.drawText(room, self.alignment() | Qt.AlignmentFlag.AlignVCenter, text)
        painter.end()


class ElidedFigures(ElidedLabel):
    """Of several figures each is seen whole, or not at all."""

    def shown(self, width: int) -> str:
        parts = self.text().split(SEPARATOR)
        while len(parts) > 1 and self.fontMetrics().horizontalAdvance(joined(*parts)) > width:
            parts.pop()
        return self.fontMetrics().elidedText(joined(*parts), self._elide, width)
