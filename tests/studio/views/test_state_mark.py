"""The shapes of states: which of them move, when, and that none is drawn again for nothing."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget

from studio.views import state_mark
from studio.views.state_mark import MARK_PX, StateMark, paint_mark
from studio.views.status_words import Mark, StatusWords, Tone
from studio.views.theme import Theme

MOVING = (Mark.DOT, Mark.TURN)


class CountedMark(StateMark):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.num_paints = 0

    def paintEvent(self, event: QPaintEvent) -> None:
        self.num_paints += 1
        super().paintEvent(event)


def drawn(theme: Theme, mark: Mark, moment_ms: int) -> QImage:
    image = QImage(MARK_PX, MARK_PX, QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.white)
    painter = QPainter(image)
    box = QRectF(0, 0, MARK_PX, MARK_PX)
    paint_mark(painter, box, StatusWords(mark, "x"), theme.colors, moment_ms=moment_ms)
    painter.end()
    return image


@pytest.mark.parametrize("mark", [mark for mark in Mark if mark is not Mark.NONE])
def test_a_dot_breathes_a_ring_turns_and_nothing_else_moves(theme: Theme, mark: Mark) -> None:
    moments = [drawn(theme, mark, moment_ms) for moment_ms in (0, 200, 400, 800)]
    assert any(one != moments[0] for one in moments) is (mark in MOVING)


def test_a_breath_comes_around_and_a_turn_ends_as_it_began(theme: Theme) -> None:
    assert drawn(theme, Mark.DOT, 1600) == drawn(theme, Mark.DOT, 0)
    assert drawn(theme, Mark.TURN, 5000) == drawn(theme, Mark.TURN, 0)


def test_it_moves_only_while_it_is_seen(theme: Theme, page: QWidget) -> None:
    mark = StateMark(theme, page)
    mark.show_state(StatusWords(Mark.DOT, "Writing"))
    assert mark.is_moving
    mark.show_state(StatusWords(Mark.BARS, "Parked"))
    assert not mark.is_moving
    mark.show_state(StatusWords(Mark.DOT, "Writing"))
    page.hide()
    assert not mark.is_moving
    page.show()
    assert mark.is_moving
    mark.show_state(StatusWords(Mark.NONE, ""))
    assert not mark.is_moving


def test_other_words_do_not_begin_a_breath_anew(theme: Theme, page: QWidget) -> None:
    mark = StateMark(theme, page)
    mark.show_state(StatusWords(Mark.DOT, "Writing · 40 tok/s"))
    before = mark._since.msecsSinceReference()
    mark.show_state(StatusWords(Mark.DOT, "Writing · 41 tok/s"))
    assert mark._since.msecsSinceReference() == before


def test_nothing_moves_where_the_desktop_wants_no_motion(
    theme: Theme, page: QWidget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_mark, "may_move", lambda _widget: False)
    mark = StateMark(theme, page)
    mark.show_state(StatusWords(Mark.DOT, "Writing"))
    assert mark.isVisible()
    assert not mark.is_moving


def test_other_words_alone_have_it_drawn_no_more(
    theme: Theme, page: QWidget, qtbot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_mark, "may_move", lambda _widget: False)
    mark = CountedMark(theme, page)
    page.show()
    mark.show_state(StatusWords(Mark.DOT, "Writing · 11 tok/s", Tone.ACTIVE))
    qtbot.waitUntil(lambda: mark.num_paints == 1)
    mark.show_state(StatusWords(Mark.DOT, "Writing · 12 tok/s", Tone.ACTIVE))
    QApplication.processEvents()
    assert (mark.toolTip(), mark.num_paints) == ("Writing · 12 tok/s", 1)
    mark.show_state(StatusWords(Mark.BARS, "Parked", Tone.WAITING))
    qtbot.waitUntil(lambda: mark.num_paints == 2)
