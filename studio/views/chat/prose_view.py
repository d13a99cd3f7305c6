"""A piece of rendered text: selectable, as high as its text, never scrolling by itself, never loading anything.

GUI thread. While it grows by mere words they are added at its end; anything else has it rendered again. What is
selected stays selected. Links open only after they have said where they lead (see `link_menu`).
"""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QSize, Qt, QUrl
from PySide6.QtGui import (
    QFocusEvent,
    QPainter,
    QPaintEvent,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QTextEdit, QWidget

from studio.views.chat.kit import Kit
from studio.views.chat.link_menu import offer_link
from studio.views.chat.markdown_style import Dress, is_quote, render, render_plain
from studio.views.chat.plain_growth import plain_growth
from studio.views.focus_ring import is_by_keyboard
from studio.views.theme import Colors

_QUOTE_BAR_PX = 3


class ProseView(QTextBrowser):
    """Shows Markdown or plain text."""

    def __init__(self, kit: Kit, parent: QWidget, dress: Dress | None = None) -> None:
        super().__init__(parent)
        self.num_renders = 0
        """How often all of it was rendered, for the tests and the bench."""
        self._kit = kit
        self._dress = dress or Dress()
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
        self.anchorClicked.connect(lambda url: offer_link(url, self))
        self.highlighted.connect(self._on_highlighted)

    @property
    def text_edit(self) -> QTextBrowser:
        """Where its text can be selected."""
        return self

    def set_dress(self, dress: Dress) -> None:
        """How the text that is set next differs from others."""
        self._dress = dress

    def forget(self) -> None:
        """Show nothing, and be ready for another text."""
        cursor = self.textCursor()
        cursor.clearSelection()
        self.setTextCursor(cursor)
        self.setExtraSelections([])
        self.setToolTip("")
        self._source = ""
        self._shown_in = None

    def set_markdown(self, text: str) -> None:
        """Show Markdown; cheap when nothing has changed, and when only words were added."""
        self._show(text, is_markdown=True)

    def set_plain(self, text: str) -> None:
        """Show text as it is."""
        self._show(text, is_markdown=False)

    def refresh(self) -> None:
        """Render again: something that it shows is another one now."""
        if self._shown_in is not None:
            self._render()

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
            if shown_px != width:
                document.setTextWidth(width)
            height = self._heights[width] = math.ceil(document.size().height())
        return height

    def loadResource(self, kind: int, name: QUrl | str) -> None:
        """Nothing that a message names is loaded, from disk or from the network."""

    def focusInEvent(self, event: QFocusEvent) -> None:
        """The keyboard comes for the links: it stands on the first of them, or from below on the last."""
        super().focusInEvent(event)
        if is_by_keyboard(event):
            self.focusNextPrevChild(event.reason() is not Qt.FocusReason.BacktabFocusReason)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the transcript scrolls, not its pieces

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        is_dress = event.type() in (QEvent.Type.PaletteChange, QEvent.Type.StyleChange)
        if is_dress and self._shown_in is not None and self._shown_in is not self._kit.theme.colors:
            self._render()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if ">" not in self._source or not self._is_markdown:
            return  # no quote, and no need to look at every block for each frame
        layout = self.document().documentLayout()
        painter = QPainter(self.viewport())
        block = self.document().begin()
        while block.isValid():
            if is_quote(block):
                box = layout.blockBoundingRect(block)
                is_rtl = block.textDirection() is Qt.LayoutDirection.RightToLeft
                left = self.viewport().width() - _QUOTE_BAR_PX if is_rtl else 0
                painter.fillRect(
                    left,
                    round(box.top()),
                    _QUOTE_BAR_PX,
                    round(box.height()),
                    self._kit.theme.colors.border,
                )
            block = block.next()
        painter.end()

    def _show(self, text: str, *, is_markdown: bool) -> None:
        if (text, is_markdown) == (self._source, self._is_markdown) and self._shown_in is not None:
            return
        before, self._source = self._source, text
        was_markdown, self._is_markdown = self._is_markdown, is_markdown
        is_drawn = self._shown_in is not None and is_markdown and was_markdown
        words = plain_growth(before, text) if is_drawn else None
        if words is None or not self._add(words):
            self._render()

    def _add(self, words: str) -> bool:
        """Put words at the end; False if the end is in a format of its own, which they may not be in."""
        cursor = QTextCursor(self.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        form = cursor.charFormat()
        is_own = (
            form.isAnchor()
            or form.fontFixedPitch()
            or form.fontItalic()
            or form.fontStrikeOut()
            or form.fontWeight() > 500
            or form.objectType() != 0
        )
        if is_own or cursor.currentTable() is not None or not cursor.block().text():
            return False
        with _KeptSelection(self):
            cursor.insertText(words)
        self._heights.clear()
        self._natural_px = None
        return True

    def _render(self) -> None:
        self.num_renders += 1
        self._shown_in = self._kit.theme.colors
        old = self._own_document  # one that is not ours is deleted by Qt
        self._own_document = self._new_document()
        self._heights.clear()
        self._natural_px = None
        with _KeptSelection(self):
            self.setDocument(self._own_document)
        if old is not None:
            old.deleteLater()
        may_have_links = "](" in self._source or "://" in self._source
        has_links = may_have_links and _has_links(self._own_document)
        tab = Qt.FocusPolicy.StrongFocus if has_links else Qt.FocusPolicy.ClickFocus
        if self.focusPolicy() is not tab:
            self.setFocusPolicy(tab)
        self.updateGeometry()

    def _new_document(self) -> QTextDocument:
        if self._is_markdown:
            return render(self._source, self._kit, self, self._dress)
        return render_plain(self._source, self._kit.theme, self)

    def _on_highlighted(self, url: QUrl) -> None:
        self.setToolTip(url.toString())


def _has_links(document: QTextDocument) -> bool:
    return any(form.toCharFormat().isAnchor() for form in document.allFormats())


class _KeptSelection:
    """What is selected or marked in a piece of text stays so while more text comes, and does not grow with it."""

    def __init__(self, edit: QTextBrowser) -> None:
        self._edit = edit

    def __enter__(self) -> None:
        cursor = self._edit.textCursor()
        self._anchor, self._place = cursor.anchor(), cursor.position()
        self._marks = [
            (mark.cursor.anchor(), mark.cursor.position(), QTextCharFormat(mark.format))
            for mark in self._edit.extraSelections()
        ]
        if self._marks:
            self._edit.setExtraSelections([])  # Qt would look for them in a document that is gone

    def __exit__(self, *_: object) -> None:
        if self._marks:
            self._edit.setExtraSelections([self._mark(*mark) for mark in self._marks])
        if self._anchor != self._place:
            self._edit.setTextCursor(self._cursor(self._anchor, self._place))

    def _mark(self, anchor: int, place: int, form: QTextCharFormat) -> QTextEdit.ExtraSelection:
        mark = QTextEdit.ExtraSelection()
        mark.cursor, mark.format = self._cursor(anchor, place), form
        return mark

    def _cursor(self, anchor: int, place: int) -> QTextCursor:
        last = self._edit.document().characterCount() - 1
        cursor = QTextCursor(self._edit.document())
        cursor.setPosition(min(anchor, last))
        cursor.setPosition(min(place, last), QTextCursor.MoveMode.KeepAnchor)
        return cursor
