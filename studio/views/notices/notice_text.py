"""The words of a notice: plain, broken anywhere where a path would be cut, scrolled where there are many. GUI thread.

They can be selected with the mouse, and scrolled with the keyboard where they scroll. Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QTextEdit, QWidget

from studio.views.words import tr

_EDGE_PX = 1
"""Of the border that shows the focus."""


class NoticeText(QTextEdit):
    """`resized` once it has another width, and so may need another height."""

    resized = Signal()

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

    def fit_height(self, most_px: int) -> None:
        """As high as the words at this width, but no higher than that."""
        words_px = round(self.document().size().height())
        does_scroll = words_px > most_px
        self.setFixedHeight(min(words_px, most_px) + 2 * _EDGE_PX)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus if does_scroll else Qt.FocusPolicy.NoFocus)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.resized.emit()
