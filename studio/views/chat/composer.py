"""Where the user types: grows with the text; Enter sends, Shift+Enter breaks the line.

While a reply is written Stop takes Send's place, and Queue stands beside it once something is typed. GUI thread. Always
live, also while no model is loaded. It knows no chat; its owner decides what becomes of the text. Must not import
services.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QFontMetricsF, QKeyEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from studio.views.elided_label import WholeLabel
from studio.views.icon_button import IconButton
from studio.views.inputs import line_px, text_px
from studio.views.words import tr

_BUTTON_PX = 32
_MOST_LINES = 8
_LEAST_LINES = 2
_SHARE = 0.3
"""So much of the height around it the composer takes at most, where that is more than _LEAST_LINES."""


class Composer(QFrame):
    """`submitted` carries the text, which stays until the owner calls `clear`; `stopped` asks to end the reply."""

    submitted = Signal(str)
    stopped = Signal()
    queue_wanted = Signal(str)
    """The text is to be sent when the running reply has ended."""
    edited = Signal(str)
    mime_offered = Signal(object)
    """QMimeData with files or a picture, dropped on the field or pasted into it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._is_running = False
        self._is_queue_full = False
        self._has_files = False
        self._input = _Input(self)
        self._input.submitted.connect(self._on_submit)
        self._input.textChanged.connect(self._on_edited)
        self._input.mime_offered.connect(self.mime_offered)
        self._input.focus_changed.connect(self._on_focus_changed)
        self._hint = WholeLabel(self)
        self._hint.setObjectName("secondary")
        self._button = IconButton("send", tr("Send"), self)
        self._button.setObjectName("send")
        self._button.setFixedSize(_BUTTON_PX, _BUTTON_PX)
        self._button.setIconSize(QSize(18, 18))
        self._button.clicked.connect(self._on_button)
        self._queue = IconButton("queue", tr("Queue"), self)
        self._queue.setObjectName("send")
        self._queue.setFixedSize(_BUTTON_PX, _BUTTON_PX)
        self._queue.setIconSize(QSize(18, 18))
        self._queue.set_label(tr("Queue"), shortcut="Enter")
        self._queue.clicked.connect(self._on_submit)
        self._foot = foot = QHBoxLayout()
        foot.setSpacing(6)
        foot.addWidget(self._hint, 1)
        foot.addWidget(self._queue)
        foot.addWidget(self._button)
        self._column = layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 10, 8, 8)
        layout.setSpacing(4)
        layout.addWidget(self._input)
        layout.addLayout(foot)
        self.setFocusProxy(self._input)
        self._show_state()

    def add_head(self, widget: QWidget) -> None:
        """Put something above the field."""
        self._column.insertWidget(0, widget)

    def add_tool(self, button: QWidget) -> None:
        """Put a button at the left of the foot; a click on it leaves the cursor in the field."""
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._foot.insertWidget(0, button)

    def add_figure(self, widget: QWidget) -> None:
        """Put something at the left of the buttons."""
        self._foot.insertWidget(self._foot.count() - 2, widget)

    def set_queue_full(self, *, is_full: bool) -> None:
        """Whether a message waits already: no other can then."""
        if is_full != self._is_queue_full:
            self._is_queue_full = is_full
            self._show_state()

    def set_has_files(self, *, has_files: bool) -> None:
        """Files alone may be sent, too."""
        if has_files != self._has_files:
            self._has_files = has_files
            self._show_state()

    def set_room(self, height_px: int) -> None:
        """How high that is in which it stands: the messages above it stay in sight."""
        around_px = self.sizeHint().height() - self._input.height()
        self._input.set_most_px(_SHARE * height_px - around_px)

    def text(self) -> str:
        return self._input.toPlainText()

    def set_text(self, text: str) -> None:
        """Put a draft there, to be gone on with at its end; it is not reported as an edit."""
        if text != self.text():
            self._input.blockSignals(True)
            self._input.setPlainText(text)
            self._input.moveCursor(QTextCursor.MoveOperation.End)
            self._input.blockSignals(False)
            self._input.fit()
            self._show_state()

    def clear(self) -> None:
        """The text has been sent; whoever pressed a button for that goes on writing."""
        self._input.clear()
        if self._button.hasFocus() or self._queue.hasFocus():
            self._input.setFocus(Qt.FocusReason.OtherFocusReason)

    def set_running(self, *, is_running: bool) -> None:
        """Have Stop in Send's place while the chat's reply is alive."""
        if is_running != self._is_running:
            self._is_running = is_running
            self._show_state()

    def set_prompt(self, words: str) -> None:
        """Say where the text goes to, in the empty field and to a screen reader."""
        self._input.set_prompt(words)

    def _show_state(self) -> None:
        may_queue = self._may_queue()
        if self._is_running:
            icon_name, label, keys, hint = "stop", tr("Stop"), "Esc", tr("Esc stops the reply")
            if may_queue:
                hint = tr("Enter sends it when the reply has ended · Esc stops the reply")
        else:
            icon_name, label, keys = "send", tr("Send"), "Enter"
            hint = tr("Enter sends · Shift+Enter for a new line")
        self._button.set_icon_name(icon_name)
        self._button.set_label(label, shortcut=keys)
        self._queue.setVisible(may_queue)
        self._button.setEnabled(self._is_running or self._has_something())
        self._hint.setText(hint if self._input.hasFocus() else "")

    def _on_button(self) -> None:
        if self._is_running:
            self.stopped.emit()
        else:
            self._on_submit()

    def _on_submit(self) -> None:
        if self._may_queue():
            self.queue_wanted.emit(self.text())
        elif not self._is_running and self._has_something():
            self.submitted.emit(self.text())

    def _may_queue(self) -> bool:
        return self._is_running and not self._is_queue_full and self._has_something()

    def _has_something(self) -> bool:
        return self._has_files or bool(self.text().strip())

    def _on_edited(self) -> None:
        self._input.fit()
        self._show_state()
        self.edited.emit(self.text())

    def _on_focus_changed(self, is_focused: bool) -> None:
        self._show_state()
        self.setProperty("focused", is_focused)
        self.style().unpolish(self)
        self.style().polish(self)


class _Input(QPlainTextEdit):
    """The text field itself: as high as its lines, up to _MOST_LINES or what there is room for, then it scrolls."""

    submitted = Signal()
    focus_changed = Signal(bool)
    mime_offered = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self._prompt = ""
        self._most_lines = _MOST_LINES
        self.fit()

    def set_most_px(self, height_px: float) -> None:
        num_lines = int(height_px / line_px(self))
        most = max(_LEAST_LINES, min(_MOST_LINES, num_lines))
        if most != self._most_lines:
            self._most_lines = most
            self.fit()

    def set_prompt(self, words: str) -> None:
        self._prompt = words
        self.setAccessibleName(words)
        self._show_prompt()

    def fit(self) -> None:
        """Take the height of the text."""
        num_lines = max(1, round(self.document().size().height()))
        self.setFixedHeight(text_px(self, min(self._most_lines, num_lines)))
        policy = Qt.ScrollBarPolicy
        is_long = num_lines > self._most_lines
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if is_long else policy.ScrollBarAlwaysOff
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
            event.accept()
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return _is_offer(source) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if _is_offer(source):
            self.mime_offered.emit(source)
        else:
            super().insertFromMimeData(source)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.fit()
            self._show_prompt()
        self.ensureCursorVisible()  # its line may have come to lie below what is shown

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self.fit()

    def _show_prompt(self) -> None:
        """In one line: the field is no higher than what is typed."""
        room_px = self.viewport().width() - 2 * math.ceil(self.document().documentMargin())
        metrics = QFontMetricsF(self.font())
        words = metrics.elidedText(self._prompt, Qt.TextElideMode.ElideRight, room_px)
        self.setPlaceholderText(words)
        self.viewport().update()  # Qt leaves the old words there until something is typed

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)


def _is_offer(source: QMimeData) -> bool:
    """Files, or a picture that is nothing else; what a word processor copies is text and a picture of it."""
    has_files = source.hasUrls() and all(url.isLocalFile() for url in source.urls())
    return has_files or (source.hasImage() and not source.hasText())
