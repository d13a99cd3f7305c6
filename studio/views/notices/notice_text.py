"""The words of a notice: plain, broken anywhere where a path would be cut, scrolled where there are many. GUI thread.

They can be selected with the mouse, and scrolled with the keyboard where they scroll. Must not import services.
"""

from __future__ import annotations

import math

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QFrame, QTextEdit, QWidget

from studio.views.words import tr

_EDGE_PX = 1
"""Of the border that shows the focus."""


class NoticeText(QTextEdit):
    """`reflowed` once its words have another width or height."""

    reflowed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("noticeText")
        self.setAccessibleName(tr("What happened"))
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self.reflowed)

    def fit_height(self, room_px: float, *, least_lines: int) -> None:
        """As high as the words at this width, but no higher than the whole lines there is room for."""
        line_px = math.ceil(QFontMetricsF(self.font()).lineSpacing())
        most_px = line_px * max(least_lines, int(room_px / line_px))
        words_px = math.ceil(self.document().size().height())
        does_scroll = words_px > most_px
        self.setFixedHeight(min(words_px, most_px) + 2 * _EDGE_PX)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus if does_scroll else Qt.FocusPolicy.NoFocus)
