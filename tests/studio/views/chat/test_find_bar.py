"""Words are found in a chat of any length: counted, stepped through, and shown where they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from studio.models.chat import Conversation, Message, Role
from studio.models.settings import Theme as ThemeChoice
from studio.views.chat.chat_view import ChatView
from studio.views.chat.find_bar import FindBar
from studio.views.chat.finding import Hit, find_all
from studio.views.chat.kit import Kit
from studio.views.frame_ticker import FrameTicker


@pytest.fixture
def chat() -> Conversation:
    """200 messages; every 20th has a needle, twice in a block of its own; one stands in folded thinking."""
    made = Conversation(1, "Chat", 0.0, 0.0, is_loaded=True)
    for number in range(200):
        role = Role.ASSISTANT if number % 2 else Role.USER
        text = f"Message {number}.\n\n" + "Some words. " * 60
        if number % 20 == 11:
            text += "\n\nA Needle and a needle."
        made.messages.append(Message(number + 1, 1, role, text, 0.0))
    made.messages[151].text = "<think>\nHere is a pin.\n</think>\n\nNothing."
    return made


@pytest.fixture
def view(chat: Conversation, kit: Kit, page: QWidget, qtbot: Any) -> Iterator[ChatView]:
    made = ChatView(chat, kit, FrameTicker(page), page)
    made.resize(700, 500)
    made.show()
    qtbot.waitExposed(page)
    yield made
    made.close_view()


@pytest.fixture
def bar(chat: Conversation, view: ChatView, kit: Kit, page: QWidget) -> FindBar:
    made = FindBar(kit.theme, page)
    made.open_for(chat, view)
    return made


def test_where_all_is_seen_there_is_no_way_to_the_end(
    chat: Conversation, view: ChatView, bar: FindBar
) -> None:
    del chat.messages[1:]
    view.sync()
    look_for(bar, "message 0")
    assert view.verticalScrollBar().maximum() == 0
    assert view.to_end_button.isHidden()


def look_for(bar: FindBar, words: str) -> None:
    bar.field.setText(words)
    bar.search()


def selected(view: ChatView) -> list[str]:
    edits = [row.view.text_edit for _, row in view.rows.places if row.view is not None]
    return [e.textCursor().selectedText() for e in edits if e and e.textCursor().hasSelection()]


def test_places_are_found_whatever_their_case() -> None:
    messages = [Message(1, 1, Role.USER, "Ab ab xAB", 0.0), Message(2, 1, Role.USER, "none", 0.0)]
    assert find_all(messages, "aB") == [Hit(1, 0), Hit(1, 3), Hit(1, 7)]
    assert find_all(messages, "") == []
    assert find_all([Message(3, 1, Role.USER, "Straße STRASSE x", 0.0)], "x") == [Hit(3, 15)]


def test_hits_are_counted_and_stepped_around_the_ends(bar: FindBar, view: ChatView) -> None:
    view.verticalScrollBar().setValue(0)
    look_for(bar, "needle")
    assert bar.words() == "1 of 18"
    places = []
    for number in range(1, 19):
        assert bar.words() == f"{number} of 18"
        assert selected(view)[-1].lower() == "needle"
        places.append(view.first_seen_index)
        bar.next.click()
    assert places == sorted(places)
    assert bar.words() == "1 of 18"
    bar.previous.click()
    assert bar.words() == "18 of 18"


def test_the_search_begins_at_what_is_seen(bar: FindBar, view: ChatView) -> None:
    assert view.sticks
    look_for(bar, "needle")
    assert bar.words() == "18 of 18"


def test_every_hit_on_screen_is_marked_and_nothing_is_when_it_closes(
    bar: FindBar, view: ChatView
) -> None:
    look_for(bar, "words")
    assert marked(view) > 60
    bar.close_bar()
    assert marked(view) == 0


def marked(view: ChatView) -> int:
    edits = [row.view.text_edit for _, row in view.rows.places if row.view is not None]
    return sum(len(edit.extraSelections()) for edit in edits if edit is not None)


def test_a_hit_in_folded_thinking_opens_it(bar: FindBar, view: ChatView) -> None:
    look_for(bar, "a pin")
    assert bar.words() == "1 of 1"
    section = view.rows.section_of(152)
    assert section is not None
    assert section.is_open
    assert selected(view) == ["a pin"]


def test_hits_are_marked_in_the_colour_of_the_theme_that_is_worn(
    bar: FindBar, view: ChatView, kit: Kit
) -> None:
    def marks() -> set[str]:
        edits = [row.view.text_edit for _, row in view.rows.places if row.view is not None]
        found = [mark for edit in edits if edit for mark in edit.extraSelections()]
        return {mark.format.background().color().name() for mark in found}

    look_for(bar, "message")
    assert marks() == {kit.theme.colors.selected.name()}
    kit.theme.apply(ThemeChoice.DARK, 14)
    assert marks() == {kit.theme.colors.selected.name()}


def test_enter_steps_and_escape_closes(bar: FindBar, page: QWidget, qtbot: Any) -> None:
    look_for(bar, "needle")
    page.activateWindow()
    bar.field.setFocus()
    qtbot.waitUntil(bar.field.hasFocus)
    QTest.keyClick(bar.field, Qt.Key.Key_Return)
    assert bar.words() == "1 of 18"
    QTest.keyClick(bar.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert bar.words() == "18 of 18"
    with qtbot.waitSignal(bar.closed):
        QTest.keyClick(bar.field, Qt.Key.Key_Escape)
    assert bar.isHidden()


def test_what_is_not_there_is_said(bar: FindBar) -> None:
    look_for(bar, "haystack")
    assert bar.words() == "Nothing found"
    assert not bar.next.isEnabled()
    look_for(bar, "")
    assert bar.words() == ""
