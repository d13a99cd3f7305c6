"""A piece of what the user said, as it was typed, in a bubble no wider than its text. GUI thread; no services.

A long prompt is several of these, one below the other: only its first and its last piece have round corners.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QTextBrowser, QWidget

from studio.views.chat.kit import Kit
from studio.views.chat.prose_view import ProseView
from studio.views.words import tr

_BUBBLE_SHARE = 0.85
_PAD_SIDE_PX = 14
_PAD_TOP_PX = 10
_PAD_BOTTOM_PX = 7
"""Less than at the top: the spacing of lines leaves room below the last one."""
_LEAST_TEXT_PX = 20
_RADIUS_PX = 12


class PromptView(QWidget):
    """`is_first` and `is_last` tell which piece of the bubble it is."""

    def __init__(self, kit: Kit, parent: QWidget, *, is_first: bool, is_last: bool) -> None:
        super().__init__(parent)
        self._theme = kit.theme
        self._is_first = is_first
        self._is_last = is_last
        self._text = ProseView(kit, self)
        self._text.setAccessibleName(tr("You"))

    @property
    def text_edit(self) -> QTextBrowser:
        """Where its text can be selected."""
        return self._text

    def set_text(self, text: str) -> None:
        self._text.set_plain(text)

    def heightForWidth(self, width: int) -> int:
        return self._text.heightForWidth(self._text_width(width)) + self._top + self._bottom

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        text_px = self._text_width(self.width())
        left = self.width() - text_px - _PAD_SIDE_PX
        self._text.setGeometry(left, self._top, text_px, self.height() - self._top - self._bottom)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        text_px = self._text_width(self.width())
        left = self.width() - text_px - 2 * _PAD_SIDE_PX
        box = QRectF(left, 0, text_px + 2 * _PAD_SIDE_PX, self.height())
        if not self._is_first:
            box.setTop(-2 * _RADIUS_PX)
        if not self._is_last:
            box.setBottom(self.height() + 2 * _RADIUS_PX)
        path = QPainterPath()
        path.addRoundedRect(box, _RADIUS_PX, _RADIUS_PX)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.colors.bubble)
        painter.drawPath(path)
        painter.end()

    @property
    def _top(self) -> int:
        return _PAD_TOP_PX if self._is_first else 0

    @property
    def _bottom(self) -> int:
        return _PAD_BOTTOM_PX if self._is_last else 0

    def _text_width(self, width: int) -> int:
        room = round(width * _BUBBLE_SHARE) - 2 * _PAD_SIDE_PX
        if not (self._is_first and self._is_last):
            return max(_LEAST_TEXT_PX, room)  # all pieces of one bubble are of one width
        return max(_LEAST_TEXT_PX, min(room, self._text.text_width_px() + 1))
