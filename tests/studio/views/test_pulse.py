"""Everything that moves is drawn in the same passes over the window, and nothing beats where nothing moves."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget
from shiboken6 import delete

from studio.views.pulse import Pulse
from studio.views.state_mark import StateMark
from studio.views.status_words import Mark, StatusWords
from studio.views.theme import Theme

WRITING = StatusWords(Mark.DOT, "Writing")


class Passes(QObject):
    """Counts the passes over a window."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.count = 0
        window.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() is QEvent.Type.UpdateRequest
        return False


class Moving(QWidget):
    """Counts how often it is drawn."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.num_paints = 0
        self.show()

    def paintEvent(self, _event: object) -> None:
        self.num_paints += 1


def test_many_that_move_are_one_pass(page: QWidget, qtbot: Any) -> None:
    pulse, marks = Pulse(), [Moving(page) for _ in range(8)]
    qtbot.waitUntil(lambda: all(mark.num_paints for mark in marks))
    passes = Passes(page.window())
    before = [mark.num_paints for mark in marks]
    for mark in marks:
        pulse.move(mark)
    qtbot.waitUntil(lambda: marks[0].num_paints >= before[0] + 3)
    drawn = [mark.num_paints - count for mark, count in zip(marks, before, strict=True)]
    assert set(drawn) == {drawn[0]}
    assert passes.count <= drawn[0] + 1


def test_it_beats_only_while_something_moves(page: QWidget, qtbot: Any) -> None:
    pulse, one, other = Pulse(), Moving(page), Moving(page)
    assert not pulse.is_beating
    pulse.move(one)
    pulse.move(other)
    pulse.rest(one)
    assert pulse.is_beating
    pulse.rest(other)
    assert not pulse.is_beating
    pulse.rest(other)  # said twice


def test_what_is_deleted_while_it_moves_is_forgotten(page: QWidget, qtbot: Any) -> None:
    pulse, gone = Pulse(), Moving(page)
    pulse.move(gone)
    delete(gone)
    qtbot.waitUntil(lambda: not pulse.is_beating)


def test_the_marks_of_a_window_move_together(theme: Theme, page: QWidget, qtbot: Any) -> None:
    marks = [StateMark(theme, page) for _ in range(3)]
    for mark in marks:
        mark.show_state(WRITING)
    assert theme.pulse.is_beating
    for mark in marks:
        mark.show_state(StatusWords(Mark.BARS, "Parked"))
    assert not theme.pulse.is_beating


def test_a_ring_that_has_turned_once_lets_the_pulse_rest(
    theme: Theme, page: QWidget, qtbot: Any
) -> None:
    mark = StateMark(theme, page)
    mark.show_state(StatusWords(Mark.TURN, "Coming back"))
    assert mark.is_moving
    qtbot.waitUntil(lambda: not theme.pulse.is_beating)
    assert not mark.is_moving
