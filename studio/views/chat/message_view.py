"""One message: a bubble for what the user said; text, state and figures for a reply. GUI thread.

The line under a reply has the same height in every state, so that nothing jumps when the state changes. Must not import
services.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from studio.models.chat import Message, Role
from studio.views.chat.markdown_view import MarkdownView
from studio.views.chat.prose_view import ProseView
from studio.views.icon_button import IconButton
from studio.views.state_mark import StateMark
from studio.views.status_words import Tone, describe_reply
from studio.views.theme import Theme
from studio.views.words import tr

_COPIED_MS = 1500
_BUBBLE_SHARE = 0.85
_PAD_SIDE_PX = 14
_PAD_TOP_PX = 11
_PAD_BOTTOM_PX = 7
"""Less than at the top: the spacing of lines leaves room below the last one."""
_LEAST_TEXT_PX = 20
_LABEL_OF_TONE = {
    Tone.QUIET: "secondary",
    Tone.ACTIVE: "secondary",
    Tone.WAITING: "waiting",
    Tone.FAILED: "failed",
}


class MessageView(QWidget):
    """What every message view can do. Its owner gives it the height that `heightForWidth` tells."""

    layout_changed = Signal()
    """The height may be another one now, also without a `redraw`: the colours or the text size changed."""

    def __init__(self, message: Message, parent: QWidget) -> None:
        super().__init__(parent)
        self.message = message

    def redraw(self) -> None:
        """Show what the message says now; called at most once per frame."""

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.layout_changed.emit()
        return super().event(event)


def make_message_view(message: Message, theme: Theme, parent: QWidget) -> MessageView:
    """The view for the message's role."""
    if message.role is Role.ASSISTANT:
        return ReplyView(message, theme, parent)
    return PromptView(message, theme, parent)


class PromptView(MessageView):
    """What the user said, as it was typed, in a bubble at the right no wider than its text."""

    def __init__(self, message: Message, theme: Theme, parent: QWidget) -> None:
        super().__init__(message, parent)
        self.bubble = QFrame(self)
        self.bubble.setObjectName("bubble")
        self._text = ProseView(theme, self.bubble, is_first=True)
        self._text.setAccessibleName(tr("You"))
        self.redraw()

    def redraw(self) -> None:
        self._text.set_plain(self.message.text)

    def text(self) -> str:
        return self._text.toPlainText()

    def heightForWidth(self, width: int) -> int:
        return self._text.heightForWidth(self._text_width(width)) + _PAD_TOP_PX + _PAD_BOTTOM_PX

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        text_px = self._text_width(self.width())
        bubble_px = text_px + 2 * _PAD_SIDE_PX
        self.bubble.setGeometry(self.width() - bubble_px, 0, bubble_px, self.height())
        text_height = self.height() - _PAD_TOP_PX - _PAD_BOTTOM_PX
        self._text.setGeometry(_PAD_SIDE_PX, _PAD_TOP_PX, text_px, text_height)

    def _text_width(self, width: int) -> int:
        room = round(width * _BUBBLE_SHARE) - 2 * _PAD_SIDE_PX
        return max(_LEAST_TEXT_PX, min(room, self._text.text_width_px() + 1))


class ReplyView(MessageView):
    """What the model says: text that grows, and one line that says how it stands."""

    def __init__(self, message: Message, theme: Theme, parent: QWidget) -> None:
        super().__init__(message, parent)
        self._text = MarkdownView(theme, self)
        self._is_whole = False
        self._mark = StateMark(theme, self)
        self._state = QLabel(self)
        self._state.setWordWrap(True)
        self._state.setTextFormat(Qt.TextFormat.PlainText)
        self._copy = IconButton("copy", tr("Copy reply"), self)
        self._copy.setObjectName("small")
        self._copy.clicked.connect(self._on_copy)
        self._copied = QTimer(self)
        self._copied.setSingleShot(True)
        self._copied.setInterval(_COPIED_MS)
        self._copied.timeout.connect(self._on_copied_shown)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(self._mark)
        foot.addWidget(self._state, 1)
        foot.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._text)
        layout.addLayout(foot)
        self.redraw()

    def redraw(self) -> None:
        message = self.message
        if message.status.is_alive:
            if self._is_whole:  # it was interrupted, and goes on
                self._is_whole = False
                self._text.start_again()
            self._text.stream(message.text)
        elif not self._is_whole:
            self._is_whole = True
            self._text.finish(message.text)
        self._show_state()

    def _show_state(self) -> None:
        words = describe_reply(self.message)
        text = "" if self.message.status.is_alive else words.text  # the strip has the words
        self._mark.show_state(words)
        if self._state.text() != text:
            self._state.setText(text)
            self._state.setToolTip(text)
        name = _LABEL_OF_TONE[words.tone]
        if self._state.objectName() != name:
            self._state.setObjectName(name)
            self._state.style().unpolish(self._state)
            self._state.style().polish(self._state)
        self._copy.setEnabled(bool(self.message.text))

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.message.text)
        self._copy.set_icon_name("check")
        self._copied.start()

    def _on_copied_shown(self) -> None:
        self._copy.set_icon_name("copy")
