"""A piece of code: its language, a Copy button, and coloured lines that do not wrap. GUI thread; no services."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QTextBlockFormat, QTextCursor, QWheelEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from studio.views.chat.highlighter import Highlighter
from studio.views.chat.kit import Kit
from studio.views.theme import Theme
from studio.views.words import tr

_COPIED_MS = 1500
_SCROLL_BAR_PX = 14
_LINE_HEIGHT = 1.4


class CodeBlock(QFrame):
    """`set_text` takes the code so far; while it only grows, only what is new is inserted. Then `finish` it."""

    def __init__(self, language: str, kit: Kit, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("codeBlock")
        self.language = language
        self._slices = kit.slices
        self._is_finished = False
        self._theme = kit.theme
        self._shown_in = kit.theme.colors
        self._lines = _CodeLines(kit.theme, self)
        self._highlighter = Highlighter(self._lines.document(), language, kit.theme)
        self._lines.setAccessibleName(
            tr("{language} code").format(language=language) if language else tr("Code")
        )
        label = QLabel(language, self)
        label.setObjectName("secondary")
        self._copy = QPushButton(tr("Copy"), self)
        self._copy.setObjectName("quiet")
        self._copy.setAccessibleName(tr("Copy code"))
        self._copy.clicked.connect(self._on_copy)
        self._copied = QTimer(self)
        self._copied.setSingleShot(True)
        self._copied.setInterval(_COPIED_MS)
        self._copied.timeout.connect(self._on_copied_shown)
        head = QHBoxLayout()
        head.setContentsMargins(12, 4, 4, 0)
        head.addWidget(label, 1)
        head.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self._lines)

    def set_text(self, text: str) -> None:
        """Show the code so far."""
        self._lines.set_text(text)
        self.updateGeometry()  # at once: layouts tell layouts around them only with the next event

    def heightForWidth(self, width: int) -> int:
        """The lines do not wrap: it is as high at any width."""
        return self.sizeHint().height()

    def finish(self) -> None:
        """The code is whole: have it coloured as a whole."""
        if not self._is_finished:
            self._is_finished = True
            self._color()

    def let_go(self) -> None:
        """Before the widget goes: what it still has to do is not wanted any more."""
        self._slices.stop(self._highlighter)

    @property
    def text_edit(self) -> QTextEdit:
        """Where its text can be selected."""
        return self._lines

    def text(self) -> str:
        return self._lines.toPlainText()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        is_dress = event.type() == QEvent.Type.PaletteChange
        if is_dress and self._shown_in is not self._theme.colors:
            self._color()

    def _color(self) -> None:
        self._shown_in = self._theme.colors
        if self._highlighter.can_color:
            highlighter = self._highlighter
            work = highlighter.settle() if self._is_finished else highlighter.color_again()
            self._slices.start(highlighter, work)  # which may go before this block does

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text())
        self._copy.setText(tr("Copied"))
        self._copied.start()

    def _on_copied_shown(self) -> None:
        self._copy.setText(tr("Copy"))


class _CodeLines(QTextEdit):
    """The lines: as high as they are many, scrolling only sideways."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown = ""
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setLineWrapMode(QTextEdit.LineWrapMode.NoWrap)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextBrowserInteraction)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.viewport().setAutoFillBackground(False)
        self.document().setDocumentMargin(0)
        self.setViewportMargins(12, 4, 12, 0)
        self._dress()

    def set_text(self, text: str) -> None:
        bar = self.horizontalScrollBar()
        place_px = bar.value()
        cursor = QTextCursor(self.document())
        if not text.startswith(self._shown):
            cursor.select(QTextCursor.SelectionType.Document)
            cursor.removeSelectedText()
            self._shown = ""
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text[len(self._shown) :])
        self._shown = text
        self._fit()
        if not self.textCursor().hasSelection():
            self.moveCursor(QTextCursor.MoveOperation.Start)  # or the view would follow the text
        bar.setValue(place_px)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.angleDelta().x():
            super().wheelEvent(event)
        else:
            event.ignore()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._dress()

    def _dress(self) -> None:
        self.setFont(self._theme.code_font())
        form = QTextBlockFormat()
        form.setLineHeight(self._line_px, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.mergeBlockFormat(form)
        self._fit()

    @property
    def _line_px(self) -> int:
        return round(self._theme.ui_px * _LINE_HEIGHT)

    def _fit(self) -> None:
        self.setFixedHeight(self.document().blockCount() * self._line_px + 4 + _SCROLL_BAR_PX)
