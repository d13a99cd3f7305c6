"""The slim strip above the composer: how the chat's reply stands, why it waits, and what can be done. GUI thread.

Its one line keeps its place while there is nothing to say, so that nothing jumps when a reply begins or ends. Below is
a sentence with the reason while the reply is outside the pool, and one about turns while it takes them: replies that do
come and go every few seconds, and whoever aims at the button meets it. It only says what is wanted.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import (
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from engine.runs import Run
from studio.models.chat import Message
from studio.services.run_service import Steer
from studio.views.labels import dress, line
from studio.views.run_sentences import (
    Others,
    describe_strip,
    reason_sentence,
    turns_sentence,
)
from studio.views.state_mark import StateMark
from studio.views.status_words import Mark, StatusWords, Tone
from studio.views.steer_menu import SteerButton, first_words, may_go_first
from studio.views.theme import Theme
from studio.views.words import tr

_LINE_PX = 28
_NARROW_PX = 480
_EDGE_PX = 3
_EDGE_GAP_PX = 9
_NOTHING = StatusWords(Mark.NONE, "")


class StatusStrip(QWidget):
    """`steer_wanted` carries the Steer."""

    steer_wanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._hue: int | None = None
        self._words = _NOTHING
        self._mark = StateMark(theme, self)
        self._text = line("", "secondary", self)
        self._text.setMinimumHeight(_LINE_PX)
        self._reason = line("", "secondary", self)
        self.first_button = QPushButton(self)
        self.first_button.setObjectName("steer")
        self.first_button.clicked.connect(lambda: self.steer_wanted.emit(Steer.GO_FIRST))
        self.more_button = SteerButton(tr("More for this reply"), self)
        self.more_button.setFixedHeight(_LINE_PX)
        for button in (self.first_button, self.more_button):
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the cursor
        self.more_button.wanted.connect(self.steer_wanted)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._mark)
        head.addWidget(self._text, 1)
        head.addWidget(self.more_button)
        self._why = QWidget(self)
        room = QVBoxLayout(self._why)
        room.setContentsMargins(0, 0, 0, 0)
        self._below = below = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        below.setSpacing(8)
        room.addLayout(below)
        room.addStretch(1)
        below.addWidget(self._reason, 1)
        below.addWidget(self.first_button, 0, Qt.AlignmentFlag.AlignLeft)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_EDGE_PX + _EDGE_GAP_PX, 0, 4, 6)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(self._why)
        self._mark.hide()
        self.show_nothing()

    def show_nothing(self) -> None:
        """No reply is alive."""
        self._show_words(_NOTHING, "")
        self._why.setMinimumHeight(0)
        self._reason.setMinimumHeight(0)
        self._why.hide()
        self._show_hue(None)
        self.more_button.hide()

    def show_reply(self, reply: Message, run: Run | None, others: Others, now_s: float) -> None:
        """Say how a reply that is alive stands."""
        words = describe_strip(reply, run, now_s)
        reason = reason_sentence(reply, run, others) or turns_sentence(run, others)
        is_offered = bool(reason) and run is not None and may_go_first(run)
        is_aimed_at = self.underMouse() and run is not None and self.first_button.isVisible()
        self._show_words(words, reason, has_button=is_offered or is_aimed_at)
        self._show_hue(others.hue(run))
        self.more_button.setVisible(run is not None)
        if run is not None:
            self.first_button.setText(first_words(run))
            self.more_button.show_run(run, can_park=others.can_park)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """In a narrow pane the button stands below the reason, which needs the whole width."""
        super().resizeEvent(event)
        if event.size().width() == event.oldSize().width():
            return
        self._why.setMinimumHeight(0)
        self._reason.setMinimumHeight(0)
        way = QBoxLayout.Direction
        is_narrow = event.size().width() < _NARROW_PX
        self._below.setDirection(way.TopToBottom if is_narrow else way.LeftToRight)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._hue is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.hues[self._hue])
        height = self.height() if self._reason.isVisible() else self._text.geometry().bottom() + 6
        edge = QRectF(0, 5, _EDGE_PX, height - 14)
        painter.drawRoundedRect(edge, _EDGE_PX / 2, _EDGE_PX / 2)
        painter.end()

    def _show_hue(self, hue: int | None) -> None:
        if hue != self._hue:
            self._hue = hue
            self.update()

    def _show_words(self, words: StatusWords, reason: str, *, has_button: bool = False) -> None:
        if words != self._words:
            self._words = words
            self._mark.show_state(words)
            self._text.setText(words.text)
            dress(self._text, "waiting" if words.tone is Tone.WAITING else "secondary")
        if self._reason.text() != reason:
            self._hold_button()
            self._reason.setText(reason)
        is_shown = bool(reason) or has_button  # without the words' room the button would move
        if is_shown:
            self._why.show()
        else:
            self._why.setMinimumHeight(self._why.height() if self._why.isVisible() else 0)
        if self._reason.isHidden() == is_shown:
            self._reason.setVisible(is_shown)
            self.update()
        self.first_button.setVisible(has_button)

    def _hold_button(self) -> None:
        """Another sentence may have fewer lines than this one: the button stays where it is."""
        if self._reason.isVisible():
            self._reason.setMinimumHeight(self._reason.height())
