"""A button with many words: in one line where there is room, in several in a narrow pane, and never cut."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QVBoxLayout, QWidget

from studio.views.flow_layout import FlowLayout
from studio.views.theme import Theme
from studio.views.wrapped_button import WrappedButton

WORDS = "Leave out the oldest 2 messages and send 17 tokens"


@pytest.fixture
def pane(theme: Theme, page: QWidget) -> QWidget:
    return QWidget(page)


def shown(pane: QWidget, width: int) -> WrappedButton:
    """The button in a pane of that width."""
    button = WrappedButton(pane, WORDS)
    layout = FlowLayout(pane, 8)
    layout.addWidget(button)
    pane.resize(width, layout.heightForWidth(width))
    pane.show()
    return button


def test_words_that_fit_stand_in_one_line(pane: QWidget) -> None:
    button = shown(pane, 600)
    assert button.text() == WORDS
    assert button.size() == button.sizeHint()


@pytest.mark.parametrize("width", [200, 130, 110])
def test_in_a_narrow_pane_every_word_is_seen(pane: QWidget, width: int) -> None:
    button = shown(pane, width)
    assert button.text().replace("\n", " ") == button.words == button.accessibleName() == WORDS
    metrics, one_line = button.fontMetrics(), button.sizeHint().height()
    frame = button.sizeHint().width() - metrics.horizontalAdvance(WORDS)
    lines = button.text().split("\n")
    assert all(metrics.horizontalAdvance(line) <= width - frame for line in lines)
    assert button.width() <= width
    more_px = (len(lines) - 1) * metrics.lineSpacing()
    assert more_px <= button.height() - one_line <= more_px + len(lines)


def test_other_words_are_laid_out_anew(pane: QWidget) -> None:
    button = shown(pane, 200)
    button.set_words("Short")
    assert button.text() == "Short"
    pane.hide()
    button.set_words(WORDS)
    pane.show()
    assert "\n" in button.text()


def test_buttons_above_each_other_may_be_as_wide(pane: QWidget) -> None:
    column = QVBoxLayout(pane)
    buttons = [WrappedButton(pane, words) for words in ("Load", WORDS)]
    widest = max(button.sizeHint().width() for button in buttons)
    for button in buttons:
        button.set_liked_px(widest)
        column.addWidget(button)
    assert {button.sizeHint().width() for button in buttons} == {widest}
    assert pane.minimumSizeHint().width() < 200, "where there is room only"
