"""A mark is drawn again when its shape changes, and not for words that change with every token."""

from __future__ import annotations

from typing import Any

from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QApplication, QWidget

from studio.views.state_mark import StateMark
from studio.views.status_words import Mark, StatusWords, Tone
from studio.views.theme import Theme


class CountedMark(StateMark):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.num_paints = 0

    def paintEvent(self, event: QPaintEvent) -> None:
        self.num_paints += 1
        super().paintEvent(event)


def test_other_words_alone_have_it_drawn_no_more(theme: Theme, page: QWidget, qtbot: Any) -> None:
    mark = CountedMark(theme, page)
    page.show()
    mark.show_state(StatusWords(Mark.DOT, "Writing · 11 tok/s", Tone.ACTIVE))
    qtbot.waitUntil(lambda: mark.num_paints == 1)
    mark.show_state(StatusWords(Mark.DOT, "Writing · 12 tok/s", Tone.ACTIVE))
    QApplication.processEvents()
    assert (mark.toolTip(), mark.num_paints) == ("Writing · 12 tok/s", 1)
    mark.show_state(StatusWords(Mark.BARS, "Parked", Tone.WAITING))
    qtbot.waitUntil(lambda: mark.num_paints == 2)
