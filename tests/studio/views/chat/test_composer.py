"""Where the user types: keys, growth, and the button that sends or stops."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QVBoxLayout, QWidget

from fakes.shots import lay_out
from studio.views.chat.composer import Composer
from studio.views.icon_button import IconButton


@pytest.fixture
def composer(page: QWidget) -> Composer:
    made = Composer(page)
    layout = QVBoxLayout(page)
    layout.addStretch(1)
    layout.addWidget(made)
    made.show()
    return made


@pytest.fixture
def field(composer: Composer) -> QPlainTextEdit:
    return composer.findChild(QPlainTextEdit)


@pytest.fixture
def button(composer: Composer) -> IconButton:
    return composer.findChild(IconButton)


def test_enter_sends_and_the_text_stays_until_it_is_cleared(
    composer: Composer, field: QPlainTextEdit, qtbot: Any
) -> None:
    QTest.keyClicks(field, "Hello")
    with qtbot.waitSignal(composer.submitted) as sent:
        QTest.keyClick(field, Qt.Key.Key_Return)
    assert sent.args == ["Hello"]
    assert composer.text() == "Hello"
    composer.clear()
    assert composer.text() == ""


def test_shift_enter_breaks_the_line(composer: Composer, field: QPlainTextEdit, qtbot: Any) -> None:
    with qtbot.assertNotEmitted(composer.submitted):
        QTest.keyClicks(field, "a")
        QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
        QTest.keyClicks(field, "b")
    assert composer.text() == "a\nb"


def test_the_keypads_enter_sends_too(composer: Composer, field: QPlainTextEdit, qtbot: Any) -> None:
    composer.set_text("Hello")
    with qtbot.waitSignal(composer.submitted):
        QTest.keyClick(field, Qt.Key.Key_Enter, Qt.KeyboardModifier.KeypadModifier)


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_blank_text_is_not_sent(
    composer: Composer, field: QPlainTextEdit, button: IconButton, qtbot: Any, text: str
) -> None:
    composer.set_text(text)
    assert not button.isEnabled()
    with qtbot.assertNotEmitted(composer.submitted):
        QTest.keyClick(field, Qt.Key.Key_Return)


def test_send_becomes_stop_while_the_chat_runs(
    composer: Composer, field: QPlainTextEdit, button: IconButton, qtbot: Any
) -> None:
    assert button.accessibleName() == "Send"
    composer.set_running(is_running=True)
    assert button.accessibleName() == "Stop"
    assert button.isEnabled()
    with qtbot.waitSignal(composer.stopped):
        button.click()
    assert composer._queue.isHidden()
    QTest.keyClicks(field, "Next question")
    with qtbot.assertNotEmitted(composer.submitted):
        QTest.keyClick(field, Qt.Key.Key_Return)
    with qtbot.waitSignal(composer.queue_wanted):
        composer._queue.click()
    with qtbot.waitSignal(composer.stopped), qtbot.assertNotEmitted(composer.queue_wanted):
        button.click()
    assert button.accessibleName() == "Stop"
    composer.set_running(is_running=False)
    with qtbot.waitSignal(composer.submitted) as sent:
        button.click()
    assert sent.args == ["Next question"]
    button.setFocus()
    composer.clear()
    assert QApplication.focusWidget() is field, "whoever sent goes on writing"


def test_the_field_grows_to_eight_lines_and_then_scrolls(
    composer: Composer, field: QPlainTextEdit
) -> None:
    heights = []
    for lines in (1, 2, 8, 20):
        composer.set_text("\n".join("x" * lines))
        heights.append(field.height())
        assert bool(field.verticalScrollBar().maximum()) is (lines > 8), "whole lines are seen"
    assert heights[0] < heights[1] < heights[2] == heights[3]
    assert field.verticalScrollBar().maximum() > 0
    composer.set_text("x")
    assert field.height() == heights[0]
    assert field.verticalScrollBar().maximum() == 0


def test_a_long_line_wraps_and_grows_the_field(composer: Composer, field: QPlainTextEdit) -> None:
    before = field.height()
    QTest.keyClicks(field, "many words " * 20)
    assert field.height() > before


def test_the_end_of_a_long_draft_is_seen_as_the_room_changes(
    composer: Composer, field: QPlainTextEdit
) -> None:
    composer.set_text("x" * 10_000)  # one paragraph: the bar that it gets makes more lines of it
    for room_px in (2000, 320, 2000):
        composer.set_room(room_px)
        lay_out()
        assert field.viewport().rect().contains(field.cursorRect())


def test_edits_are_reported_and_drafts_put_there_are_not(
    composer: Composer, field: QPlainTextEdit, qtbot: Any
) -> None:
    with qtbot.assertNotEmitted(composer.edited):
        composer.set_text("a draft")
    with qtbot.waitSignal(composer.edited) as edit:
        QTest.keyClicks(field, "!")
    assert edit.args == ["a draft!"]


def test_tab_leaves_the_field(
    composer: Composer, field: QPlainTextEdit, button: IconButton, qtbot: Any
) -> None:
    composer.set_text("x")
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    QTest.keyClick(field, Qt.Key.Key_Tab)
    assert button.hasFocus()
    assert composer.text() == "x"


class _Paints(QObject):
    """Counts how often a widget is painted."""

    def __init__(self, watched: QWidget) -> None:
        super().__init__(watched)
        self.num = 0
        watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.num += event.type() == QEvent.Type.Paint
        return False


def test_other_words_in_the_empty_field_are_painted_at_once(
    composer: Composer, field: QPlainTextEdit, qtbot: Any
) -> None:
    composer.set_prompt("Message Write a long story")
    qtbot.wait(1)
    paints = _Paints(field.viewport())
    qtbot.wait(1)
    assert paints.num == 0
    composer.set_prompt("Write a message")
    qtbot.waitUntil(lambda: paints.num > 0)


@pytest.mark.parametrize("room_px", [320, 387, 450])
def test_a_long_text_leaves_the_messages_their_room(
    composer: Composer, field: QPlainTextEdit, room_px: int
) -> None:
    around_px = composer.sizeHint().height() - field.height()
    two_lines_px = 2 * field.fontMetrics().lineSpacing() + 12
    composer.set_room(room_px)
    field.setPlainText("word\n" * 40)
    limited_px = field.height()
    assert around_px + limited_px <= max(around_px + two_lines_px, room_px / 3 + 12)
    composer.set_room(2000)
    assert field.height() > limited_px
