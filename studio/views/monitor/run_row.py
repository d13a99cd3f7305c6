"""One request in flight in the pool panel: its name, how it stands, why it waits, what can be done. GUI thread.

Every row is as high as every other, and its buttons have their places, whatever happens to the request: whoever aims at
one meets it.
"""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from engine.runs import Run, RunState
from studio.services.run_service import Steer
from studio.views.elided_label import ElidedFigures, ElidedLabel, ElidedLines
from studio.views.icon_button import IconButton
from studio.views.labels import dress
from studio.views.run_sentences import Others, describe_run, is_held, reason_sentence
from studio.views.state_mark import StateMark
from studio.views.status_words import Mark, StatusWords, Tone, joined
from studio.views.steer_menu import SteerButton, first_words, may_go_first
from studio.views.theme import Theme
from studio.views.words import tokens, tr

_EDGE_PX = 3
_BUTTON_PX = 24
_REASON_LINES = 2


class RunRow(QFrame):
    """`steer_wanted` carries the request's id and the Steer."""

    steer_wanted = Signal(str, object)

    def __init__(self, request_id: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._id = request_id
        self._theme = theme
        self._hue = 0
        self._title = ElidedLabel(self, Qt.TextElideMode.ElideMiddle)  # names often begin alike
        self._title.setObjectName("title")
        self._mark = StateMark(theme, self)
        self._state = ElidedFigures(self)
        self._state.setObjectName("secondary")
        self._reason = ElidedLines(_REASON_LINES, self)
        self._reason.setObjectName("secondary")
        self.first_button = self._icon("first", Steer.GO_FIRST)
        self.park_button = self._icon("park", Steer.PARK)
        self.pin_button = self._icon("pin", None)
        self.pin_button.setCheckable(True)
        self.pin_button.clicked.connect(
            lambda is_on: self._steer(Steer.PIN if is_on else Steer.UNPIN)
        )
        self.stop_button = self._icon("stop", Steer.STOP)
        self.more_button = SteerButton("", self)
        self.more_button.setFixedSize(_BUTTON_PX, _BUTTON_PX)
        self.more_button.wanted.connect(self._steer)
        self._buttons = (
            self.first_button,
            self.park_button,
            self.pin_button,
            self.stop_button,
            self.more_button,
        )
        for button in self._buttons:
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the cursor
        self._lay_out()

    def show_run(self, run: Run, others: Others) -> None:
        """Show how the request stands now."""
        name, words = others.names[run.request_id], describe_run(run)
        self._title.set_text(name)
        self._mark.show_state(words)
        self._show_state(words, run)
        reason = reason_sentence(None, run, others)
        self._reason.set_text(reason)
        self.first_button.setEnabled(may_go_first(run))
        can_park = others.can_park and run.state is not RunState.AWAITS_OWNER
        self.park_button.setEnabled(can_park and not is_held(run))
        self.pin_button.setEnabled(can_park)
        self.pin_button.setChecked(run.is_pinned)
        self.more_button.show_run(run, can_park=others.can_park)
        self.stop_button.setEnabled(True)
        self.more_button.setEnabled(True)
        self._name_buttons(name, run)
        spoken = f"{name}: {joined(words.text, reason)}"
        if spoken != self.accessibleName():
            self.setAccessibleName(spoken)
        if (hue := others.hue(run)) is not None and hue != self._hue:
            self._hue = hue
            self.update()

    def show_ended(self) -> None:
        """The request is not in flight any more; the row stays where it is for the moment."""
        self._state.set_text(tr("Ended"))
        self._reason.set_text("")
        self._mark.show_state(StatusWords(Mark.NONE, tr("Ended"), Tone.QUIET))
        self.setAccessibleName(f"{self._title.text()}: {tr('Ended')}")
        for button in self._buttons:
            button.setEnabled(False)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        if self.more_button.isEnabled():
            self.more_button.menu_of_run.popup(event.globalPos())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.hues[self._hue])
        edge = QRectF(0, 4, _EDGE_PX, self.height() - 8)
        painter.drawRoundedRect(edge, _EDGE_PX / 2, _EDGE_PX / 2)
        painter.end()

    def _icon(self, name: str, steer: Steer | None) -> IconButton:
        button = IconButton(name, "", self)
        button.setObjectName("small")
        button.setFixedSize(_BUTTON_PX, _BUTTON_PX)
        if steer is not None:
            button.clicked.connect(lambda: self._steer(steer))
        return button

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(2)
        head.addWidget(self._title, 1)
        head.addSpacing(6)
        for button in self._buttons:
            head.addWidget(button)
        state = QHBoxLayout()
        state.setSpacing(6)
        state.addWidget(self._mark)
        state.addWidget(self._state, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 2, 0, 2)
        layout.setSpacing(1)
        layout.addLayout(head)
        layout.addLayout(state)
        layout.addWidget(self._reason)

    def _name_buttons(self, name: str, run: Run) -> None:
        """What each does is its tool tip; a screen reader hears to whom, too."""
        pin = tr("May be parked again") if run.is_pinned else tr("Never park")
        for button, words in (
            (self.first_button, first_words(run)),
            (self.park_button, tr("Park now")),
            (self.pin_button, pin),
            (self.stop_button, tr("Stop")),
            (self.more_button, tr("More")),
        ):
            spoken = f"{words}: {name}"
            if button.accessibleName() != spoken:
                button.setAccessibleName(spoken)
                button.setToolTip(words)

    def _show_state(self, words: StatusWords, run: Run) -> None:
        pinned = tr("never parked") if run.is_pinned else ""
        has_figure = run.held_tokens and run.state is not RunState.READING  # said already
        held = tokens(run.held_tokens) if has_figure else ""
        self._state.set_text(joined(words.text, pinned, held))
        name = "waiting" if words.tone is Tone.WAITING else "secondary"
        dress(self._state, name)

    def _steer(self, steer: Steer) -> None:
        self.steer_wanted.emit(self._id, steer)
