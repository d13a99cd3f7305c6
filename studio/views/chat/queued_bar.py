"""The prompt that waits for the end of the reply, a model or room: what it says, and ways to send it or have it back.

GUI thread; must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from studio.models.chat import QueuedPrompt
from studio.models.one_line import one_line
from studio.views.elided_label import ElidedLabel
from studio.views.words import tr


class QueuedBar(QFrame):
    """Hidden while nothing waits."""

    send_wanted = Signal()
    take_back_wanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("queued")
        self._head = head = QLabel(self)
        head.setObjectName("secondary")
        self._text = ElidedLabel(self)
        self.now = now = QPushButton(self)
        now.setObjectName("quiet")
        now.clicked.connect(self.send_wanted)
        back = QPushButton(tr("Take back"), self)
        back.setObjectName("quiet")
        back.setToolTip(tr("Put it back into the field"))
        back.clicked.connect(self.take_back_wanted)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 4, 6, 4)
        layout.setSpacing(8)
        layout.addWidget(head)
        layout.addWidget(self._text, 1)
        layout.addWidget(now)
        layout.addWidget(back)
        self.hide()

    def show_prompt(self, prompt: QueuedPrompt | None, *, is_running: bool) -> None:
        """Show what waits, or nothing; `is_running`: behind a reply."""
        self.setVisible(prompt is not None)
        if prompt is not None:
            is_too_long = prompt.is_too_long
            self._head.setText(_head_words(prompt, is_running=is_running))
            self.now.setVisible(prompt.waits_for_store or not prompt.waits_for_model)
            send = tr("Send now") if is_running else tr("Send")
            self.now.setText(tr("What now…") if is_too_long else send)
            stops = is_running and not is_too_long
            self.now.setToolTip(tr("Stop the reply and send this") if stops else "")
            names = ", ".join(one.name for one in prompt.attachments)
            self._text.set_text(one_line(prompt.text) or names)


def _head_words(prompt: QueuedPrompt, *, is_running: bool) -> str:
    """Without a reply it waits for the user: that reply was stopped, or has failed, or ended with the program."""
    if prompt.waits_for_store:
        return tr("Will be sent when it can be saved")
    if prompt.waits_for_model:
        return tr("Will be sent when the model is there")
    if prompt.is_too_long:
        return tr("Too long")
    return tr("Next") if is_running else tr("Not sent yet")
