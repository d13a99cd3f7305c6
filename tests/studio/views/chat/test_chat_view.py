"""The transcript: bounded widgets over any length, and a reader who is never pushed away from where they read."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.views.chat.chat_view import MAX_VIEWS, NUM_VIEWS, ChatView
from studio.views.frame_ticker import FrameTicker
from studio.views.theme import Theme


def chat_of(num_messages: int, *, words: int = 40) -> Conversation:
    chat = Conversation(1, "Long", 0.0, 0.0, is_loaded=True)
    for number in range(num_messages):
        role = Role.ASSISTANT if number % 2 else Role.USER
        text = f"Message {number}. " + "Some more words. " * words
        chat.messages.append(Message(number + 1, 1, role, text, 0.0))
    return chat


@pytest.fixture
def show(theme: Theme, page: QWidget, qtbot: Any) -> Any:
    """Makes a shown transcript of a chat, laid out and at its end."""

    def make(chat: Conversation) -> ChatView:
        view = ChatView(chat, theme, FrameTicker(page), page)
        view.resize(700, 500)
        view.show()
        bar = view.verticalScrollBar()
        if len(chat.messages) > 2:
            qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
        return view

    return make


def shown_numbers(view: ChatView) -> list[int]:
    """Numbers of the messages in the port, from the top."""
    top = view.verticalScrollBar().value()
    bottom = top + view.viewport().height()
    return [
        v.message.message_id for v in view.views if v.y() < bottom and v.geometry().bottom() > top
    ]


def test_a_chat_of_5000_messages_opens_with_few_widgets(show: Any, qtbot: Any) -> None:
    view = show(chat_of(5000))
    assert len(view.views) < 10
    assert shown_numbers(view)[-1] == 5000
    qtbot.waitUntil(lambda: len(view.views) == NUM_VIEWS)
    assert shown_numbers(view)[-1] == 5000
    qtbot.wait(50)
    assert len(view.views) == NUM_VIEWS
    assert len(view.findChildren(QWidget)) < 40 * NUM_VIEWS


def test_scrolling_up_pages_older_messages_in_and_holds_the_place(show: Any, qtbot: Any) -> None:
    view = show(chat_of(500, words=10))
    bar = view.verticalScrollBar()
    for _ in range(6):
        first = view.views[0].message.message_id
        bar.setValue(100)
        at_top = shown_numbers(view)[0]
        offset = view.view_of(at_top).y() - bar.value()
        qtbot.waitUntil(lambda first=first: view.views[0].message.message_id < first)
        qtbot.waitUntil(lambda a=at_top, o=offset: view.view_of(a).y() - bar.value() == o)
        assert len(view.views) <= MAX_VIEWS
    ids = [v.message.message_id for v in view.views]
    assert ids == list(range(ids[0], ids[0] + len(ids)))


def test_scrolling_down_again_pages_newer_messages_in(show: Any, qtbot: Any) -> None:
    view = show(chat_of(150, words=10))
    bar = view.verticalScrollBar()
    while view.views[0].message.message_id > 1:
        first = view.views[0].message.message_id
        bar.setValue(0)
        qtbot.waitUntil(lambda first=first: view.views[0].message.message_id < first)
    assert view.views[-1].message.message_id < 150

    def scroll_down() -> bool:
        bar.setValue(bar.maximum())
        return view.views[-1].message.message_id == 150 and view.sticks

    qtbot.waitUntil(scroll_down)
    assert len(view.views) <= MAX_VIEWS


def test_the_view_follows_a_growing_reply(show: Any, qtbot: Any) -> None:
    chat = chat_of(11)
    view = show(chat)
    reply = Message(12, 1, Role.ASSISTANT, "", 0.0, MessageStatus.WRITING)
    chat.messages.append(reply)
    view.add_message(reply)
    for number in range(40):
        reply.text += f"Paragraph {number}.\n\n"
        view.mark_changed(12)
    bar = view.verticalScrollBar()
    qtbot.waitUntil(lambda: view.view_of(12).height() > 1000 and bar.value() == bar.maximum())
    assert view.sticks


def test_the_view_yields_to_a_reader_who_scrolled_away(show: Any, qtbot: Any) -> None:
    chat = chat_of(12)
    chat.messages[-1].status = MessageStatus.WRITING
    view = show(chat)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() - 300)
    assert not view.sticks
    assert view.to_end_button.isVisible()
    offset = view.view_of(12).y() - bar.value()
    chat.messages[-1].text += "\n\nNew paragraph." * 50
    view.mark_changed(12)
    qtbot.waitUntil(lambda: view.view_of(12).height() > 1000)
    assert view.view_of(12).y() - bar.value() == offset
    view.to_end_button.click()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    assert view.sticks
    assert not view.to_end_button.isVisible()


def test_the_reader_keeps_the_place_when_the_reply_ends(show: Any, qtbot: Any) -> None:
    chat = chat_of(6)
    reply = chat.messages[-1]
    reply.status, reply.text = (
        MessageStatus.WRITING,
        "# Head\n\nText.\n\n```\ncode\n```\n\n- a\n\n- b\n\n" * 10,
    )
    view = show(chat)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() - 200)
    anchor = next(v for v in view.views if v.geometry().bottom() > bar.value())
    offset = anchor.y() - bar.value()
    reply.status = MessageStatus.DONE
    view.mark_changed(reply.message_id)
    qtbot.waitUntil(lambda: len(view.view_of(6).findChildren(QWidget)) > 0)
    qtbot.wait(50)
    assert anchor.y() - bar.value() == offset


def test_a_message_out_of_the_window_of_views_is_not_drawn(show: Any) -> None:
    view = show(chat_of(500))
    view.mark_changed(3)
    assert view.view_of(3) is None


def test_new_messages_do_not_pull_a_reader_away_from_old_ones(show: Any, qtbot: Any) -> None:
    chat = chat_of(300)
    view = show(chat)
    bar = view.verticalScrollBar()
    while view.views[-1].message.message_id == 300:
        bar.setValue(0)
        qtbot.wait(5)
    chat.messages.append(Message(301, 1, Role.USER, "New", 0.0))
    view.add_message(chat.messages[-1])
    assert view.view_of(301) is None
    view.scroll_to_end()
    qtbot.waitUntil(lambda: view.view_of(301) is not None and bar.value() == bar.maximum())
    qtbot.waitUntil(lambda: len(view.views) >= NUM_VIEWS)
    assert len(view.views) <= MAX_VIEWS


def test_home_and_end_move_through_the_transcript(show: Any, qtbot: Any) -> None:
    view = show(chat_of(40))
    bar = view.verticalScrollBar()
    QTest.keyClick(view, Qt.Key.Key_Home)
    assert bar.value() == 0
    QTest.keyClick(view, Qt.Key.Key_End)
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    assert view.sticks


def test_the_scroll_bars_coming_wraps_no_line_anew(show: Any, qtbot: Any) -> None:
    chat = chat_of(2, words=5)
    view = show(chat)
    width = view.views[0].width()
    assert view.verticalScrollBar().maximum() == 0
    chat.messages += chat_of(12).messages[2:]
    for message in chat.messages[2:]:
        view.add_message(message)
    qtbot.waitUntil(lambda: view.verticalScrollBar().isVisible())
    assert view.views[0].width() == width
    assert view.views[0].geometry().right() < view.viewport().width()


def test_an_empty_chat_has_no_views(show: Any) -> None:
    assert show(chat_of(0)).views == []
