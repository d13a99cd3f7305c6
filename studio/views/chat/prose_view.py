"""A piece of rendered text: selectable, as high as its text, never scrolling by itself, never loading anything.

GUI thread. Links open on a click only, in the system's browser, and only where their scheme is harmless.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QPainter, QPaintEvent, QTextDocument, QWheelEvent
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QWidget

from studio.views.chat.markdown_style import is_quote, render, render_plain
from studio.views.theme import Colors, Theme

_SAFE_SCHEMES = frozenset({"http", "https", "mailto"})
_QUOTE_BAR_PX = 3


def open_link(url: QUrl) -> bool:
    """Hand a link to the system's browser or mail program; False, and nothing done, for any other kind of link."""
    return url.scheme().lower() in _SAFE_SCHEMES and QDesktopServices.openUrl(url)


class ProseView(QTextBrowser):
    """Shows Markdown or plain text. `is_first` leaves out the gap above, for the first piece of a message."""

    def __init__(self, theme: Theme, parent: QWidget, *, is_first: bool) -> None:
        super().__init__(parent)
        self._theme = theme
        self._is_first = is_first
        self._source = ""
        self._is_markdown = True
        self._shown_in: Colors | None = None
        self._own_document: QTextDocument | None = None
        self._heights: dict[int, int] = {}
        """Height of the document by width, as far as it was asked for."""
        self._natural_px: int | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.anchorClicked.connect(open_link)
        self.highlighted.connect(self._on_highlighted)

    def set_markdown(self, text: str) -> None:
        """Show Markdown; cheap when nothing has changed."""
        self._show(text, is_markdown=True)

    def set_plain(self, text: str) -> None:
        """Show text as it is."""
        self._show(text, is_markdown=False)

    def text_width_px(self) -> int:
        """The width that the text takes where nothing makes it wrap."""
        if self._natural_px is None:
            document, shown_px = self.document(), self.viewport().width()
            document.setTextWidth(-1)
            self._natural_px = math.ceil(document.idealWidth())
            document.setTextWidth(shown_px)
        return self._natural_px

    def sizeHint(self) -> QSize:
        return QSize(self.width(), self.heightForWidth(self.width()))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 0)

    def heightForWidth(self, width: int) -> int:
        height = self._heights.get(width)
        if height is None:
            document, shown_px = self.document(), self.viewport().width()
            document.setTextWidth(width)
            height = self._heights[width] = math.ceil(document.size().height())
            document.setTextWidth(shown_px)  # layouts also ask for widths that never come
        return height

    def loadResource(self, kind: int, name: QUrl | str) -> None:
        """Nothing that a message names is loaded, from disk or from the network."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the transcript scrolls, not its pieces

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        is_dress = event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange)
        if is_dress and self._shown_in is not None and self._shown_in is not self._theme.colors:
            self._render()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if ">" not in self._source:
            return  # no quote, and no need to look at every block for each frame
        layout = self.document().documentLayout()
        painter = QPainter(self.viewport())
        block = self.document().begin()
        while block.isValid():
            if is_quote(block):
                box = layout.blockBoundingRect(block)
                bar = QRectF(0, box.top(), _QUOTE_BAR_PX, box.height())
                painter.fillRect(bar, self._theme.colors.border)
            block = block.next()
        painter.end()

    def _show(self, text: str, *, is_markdown: bool) -> None:
        if (text, is_markdown) != (self._source, self._is_markdown) or self._shown_in is None:
            self._source, self._is_markdown = text, is_markdown
            self._render()

    def _render(self) -> None:
        self._shown_in = self._theme.colors
        old = self._own_document  # one that is not ours is deleted by Qt
        self._own_document = self._new_document()
        self._heights.clear()
        self._natural_px = None
        self.setDocument(self._own_document)
        if old is not None:
            old.deleteLater()
        has_links = "](" in self._source or "://" in self._source
        tab = Qt.FocusPolicy.StrongFocus if has_links else Qt.FocusPolicy.ClickFocus
        self.setFocusPolicy(tab)
        self.updateGeometry()

    def _new_document(self) -> QTextDocument:
        if self._is_markdown:
            return render(self._source, self._theme, self, is_first=self._is_first)
        return render_plain(self._source, self._theme, self)

    def _on_highlighted(self, url: QUrl) -> None:
        self.setToolTip(url.toString())
