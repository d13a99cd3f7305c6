"""What can be done about one request in flight, and when: the buttons' words and the menu behind the dots. GUI thread.

The same for the strip above a composer and for a row of the pool panel. It only says what is wanted.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from engine.runs import Priority, Run, RunState
from studio.services.run_service import Steer
from studio.views.icon_button import IconButton
from studio.views.run_sentences import is_held
from studio.views.words import tr

_OUTSIDE = frozenset({RunState.QUEUED, RunState.PARKED})


class PriorityMenu(QMenu):
    """Which of three priorities a request has. `wanted` carries the Steer for another."""

    wanted = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(tr("Priority"), parent)
        group = QActionGroup(self)
        self._actions: dict[Priority, QAction] = {}
        for priority, steer, text in (
            (Priority.INTERACTIVE, Steer.INTERACTIVE, tr("Before the others")),
            (Priority.NORMAL, Steer.NORMAL, tr("Normal")),
            (Priority.BACKGROUND, Steer.BACKGROUND, tr("In the background")),
        ):
            action = self._actions[priority] = self.addAction(text)
            action.setCheckable(True)
            action.setActionGroup(group)
            action.triggered.connect(lambda _=False, steer=steer: self.wanted.emit(steer))

    def show_run(self, run: Run) -> None:
        """Tick the one that it has."""
        self._actions[run.priority].setChecked(True)


class SteerButton(IconButton):
    """Three dots with a menu: go first, park now, never park, priority, stop. `wanted` carries the Steer."""

    wanted = Signal(object)

    def __init__(self, label: str, parent: QWidget) -> None:
        super().__init__("more", label, parent)
        self.setObjectName("small")
        self.menu_of_run = menu = QMenu(self)
        self._first = menu.addAction(tr("Let it go first"))
        self._first.triggered.connect(lambda: self.wanted.emit(Steer.GO_FIRST))
        self._park = menu.addAction(tr("Park now"))
        self._park.triggered.connect(lambda: self.wanted.emit(Steer.PARK))
        self._pin = menu.addAction(tr("Never park"))
        self._pin.setCheckable(True)
        self._pin.triggered.connect(self._on_pin)
        self._priorities = PriorityMenu(menu)
        self._priorities.wanted.connect(self.wanted)
        menu.addMenu(self._priorities)
        menu.addSeparator()
        stop = menu.addAction(tr("Stop"))
        stop.triggered.connect(lambda: self.wanted.emit(Steer.STOP))
        self.clicked.connect(self._open)

    def show_run(self, run: Run, *, can_park: bool) -> None:
        """Offer what the request's state allows; `can_park` tells whether anybody is ever parked."""
        is_over = run.state is RunState.AWAITS_OWNER
        self._first.setText(first_words(run))
        self._first.setEnabled(may_go_first(run))
        self._park.setEnabled(can_park and not is_held(run) and not is_over)
        self._pin.setEnabled(can_park and not is_over)
        self._pin.setChecked(run.is_pinned)
        self._priorities.show_run(run)

    def _on_pin(self, is_on: bool) -> None:
        self.wanted.emit(Steer.PIN if is_on else Steer.UNPIN)

    def _open(self) -> None:
        size = self.menu_of_run.sizeHint()
        corner = QPoint(self.width() - size.width(), -size.height() - 2)
        self.menu_of_run.popup(self.mapToGlobal(corner))


def may_go_first(run: Run) -> bool:
    """Whether it waits outside the pool, or takes turns with others: one that has just come back keeps its room then.

    So whoever aims at the button of one that waits is not a moment late.
    """
    takes_turns = run.num_parks > 0 and run.state is not RunState.AWAITS_OWNER
    return takes_turns or run.state in _OUTSIDE


def first_words(run: Run) -> str:
    """What the button says that lets a request go first: one parked by hand is brought back with it."""
    return tr("Bring it back") if is_held(run) else tr("Let it go first")
