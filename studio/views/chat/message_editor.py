"""An earlier prompt, or a reply, being changed where it stands, and what becomes of it. GUI thread; no services."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from studio.models.chat import Message, Role
from studio.views.elided_label import ElidedLabel
from studio.views.inputs import text_px
from studio.views.theme import Theme
from studio.views.words import tr

_MAX_LINES = 14
_AROUND_PX = 38
"""Margins, spacing and edges."""


class MessageEditor(QFrame):
    """`submitted` carries the new text; `cancelled` leaves everything as it was."""

    submitted = Signal(str)
    cancelled = Signal()
    grown = Signal()
    text_edit = None

    def __init__(self, message: Message, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("messageEditor")
        is_prompt = message.role is Role.USER
        self._text = _Text(self)
        self._text.setAccessibleName(tr("Edit the prompt") if is_prompt else tr("Edit the reply"))
        self._text.setFont(theme.font(theme.text_px))
        self._text.setPlainText(message.text)
        self._text.textChanged.connect(self._on_changed)
        self._text.accepted.connect(self._on_send)
        self._text.cancelled.connect(self.cancelled)
        kept = tr("The old version and its answer are kept")
        hint = ElidedLabel(self)
        hint.set_text(kept if is_prompt else tr("The old version is kept"))
        hint.setObjectName("secondary")
        hint.setContentsMargins(round(self._text.document().documentMargin()), 0, 0, 0)
        self._send = QPushButton(tr("Send") if is_prompt else tr("Save"), self)
        self._send.setObjectName("primarySmall")
        self._send.clicked.connect(self._on_send)
        cancel = QPushButton(tr("Cancel"), self)
        cancel.clicked.connect(self.cancelled)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(hint, 1)
        foot.addWidget(cancel)
        foot.addWidget(self._send)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 10, 10)
        layout.setSpacing(8)
        layout.addWidget(self._text, 1)
        layout.addLayout(foot)
        self.setFocusProxy(self._text)
        self._on_changed()

    def text(self) -> str:
        return self._text.toPlainText()

    def start(self) -> None:
        """Put the cursor at the end of the text, once the editor is on screen."""
        QTimer.singleShot(0, self._text, self._text.take_cursor)

    def heightForWidth(self, _width: int) -> int:
        return self._text.wanted_px() + _AROUND_PX + self._send.sizeHint().height()

    def _on_changed(self) -> None:
        self._send.setEnabled(bool(self.text().strip()))
        self.grown.emit()

    def _on_send(self) -> None:
        if self.text().strip():
            self.submitted.emit(self.text())


class _Text(QPlainTextEdit):
    """Enter sends, Shift+Enter breaks the line, Esc leaves."""

    accepted = Signal()
    cancelled = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)

    def wanted_px(self) -> int:
        """The height of the text, up to _MAX_LINES lines."""
        all_lines = max(1, round(self.document().size().height()))
        lines = min(_MAX_LINES, all_lines)
        policy = Qt.ScrollBarPolicy
        is_long = all_lines > _MAX_LINES
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if is_long else policy.ScrollBarAlwaysOff
        )
        return text_px(self, lines)

    def take_cursor(self) -> None:
        self.setFocus(Qt.FocusReason.OtherFocusReason)
        self.moveCursor(self.textCursor().MoveOperation.End)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.accepted.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)
