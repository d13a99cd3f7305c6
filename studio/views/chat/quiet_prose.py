"""A piece of a model's thinking: prose in quiet colours, beside a line that tells it from the answer. GUI thread."""

from __future__ import annotations

from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QTextBrowser, QWidget

from studio.views.chat.kit import Kit
from studio.views.chat.markdown_style import Dress
from studio.views.chat.prose_view import ProseView
from studio.views.words import tr

_INDENT_PX = 16
_GAP_PX = 8
"""Above the text, so that the lines of several such pieces are one."""
_LINE_PX = 2


class QuietProse(QWidget):
    """Shows Markdown."""

    def __init__(self, kit: Kit, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = kit.theme
        self._text = ProseView(kit, self, Dress(is_first=True, is_quiet=True))
        self._text.setAccessibleName(tr("Thinking"))

    @property
    def text_edit(self) -> QTextBrowser:
        """Where its text can be selected."""
        return self._text

    @property
    def num_renders(self) -> int:
        """How often all of it was rendered."""
        return self._text.num_renders

    def set_markdown(self, text: str) -> None:
        """Show Markdown; see `ProseView`."""
        self._text.set_markdown(text)

    def refresh(self) -> None:
        """Render again."""
        self._text.refresh()

    def heightForWidth(self, width: int) -> int:
        return self._text.heightForWidth(width - _INDENT_PX) + _GAP_PX

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        left = _INDENT_PX if self.isLeftToRight() else 0
        self._text.setGeometry(left, _GAP_PX, self.width() - _INDENT_PX, self.height() - _GAP_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        left = 4 if self.isLeftToRight() else self.width() - 4 - _LINE_PX
        painter.fillRect(left, 0, _LINE_PX, self.height(), self._theme.colors.border)
        painter.end()
