"""A selection over blocks and messages: by mouse, whole, copied as words and as Markdown, and kept while more comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QTextEdit, QWidget

from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.views.chat.chat_view import ChatView
from studio.views.chat.kit import Kit
from studio.views.frame_ticker import FrameTicker

REPLY = "First *line* here.\n\n```py\nx = 1\n```\n\nLast line."


@pytest.fixture
def chat() -> Conversation:
    made = Conversation(1, "Chat", 0.0, 0.0, is_loaded=True)
    made.messages += [
        Message(1, 1, Role.USER, "A prompt", 0.0),
        Message(2, 1, Role.ASSISTANT, REPLY, 0.0),
    ]
    return made


@pytest.fixture
def view(chat: Conversation, kit: Kit, page: QWidget, qtbot: Any) -> Iterator[ChatView]:
    made = ChatView(chat, kit, FrameTicker(page), page)
    made.resize(700, 500)
    made.show()
    qtbot.waitExposed(page)
    yield made
    made.close_view()


def edits(view: ChatView) -> list[QTextEdit]:
    found = (row.view.text_edit for _, row in view.rows.places if row.view is not None)
    return [edit for edit in found if edit is not None]


def mouse(kind: QMouseEvent.Type, edit: QTextEdit, spot: QPoint, buttons: Qt.MouseButton) -> None:
    """A mouse event as the widget that has grabbed the mouse gets it, wherever the mouse is."""
    port = edit.viewport()
    button = (
        Qt.MouseButton.NoButton if kind is QMouseEvent.Type.MouseMove else Qt.MouseButton.LeftButton
    )
    here = QPointF(port.mapFromGlobal(spot))
    event = QMouseEvent(kind, here, QPointF(spot), button, buttons, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(port, event)


def drag(first: QTextEdit, last: QTextEdit, *, to_end: bool = True) -> None:
    """From the beginning of one text to the end (or the beginning) of another."""
    start = first.viewport().mapToGlobal(QPoint(0, 2))
    port = last.viewport()
    inside = QPoint(port.width() - 1, port.height() - 2) if to_end else QPoint(0, 2)
    left = Qt.MouseButton.LeftButton
    mouse(QMouseEvent.Type.MouseButtonPress, first, start, left)
    mouse(QMouseEvent.Type.MouseMove, first, port.mapToGlobal(inside), left)
    mouse(
        QMouseEvent.Type.MouseButtonRelease,
        first,
        port.mapToGlobal(inside),
        Qt.MouseButton.NoButton,
    )


def clipboard() -> tuple[str, str]:
    data = QGuiApplication.clipboard().mimeData()
    return data.text(), bytes(data.data("text/markdown").data()).decode()


def test_a_drag_over_blocks_selects_all_between(view: ChatView) -> None:
    prompt, first, code, last = edits(view)
    drag(first, last)
    assert [edit.textCursor().selectedText() for edit in (prompt, first, code, last)] == [
        "",
        "First line here.",
        "x = 1",
        "Last line.",
    ]
    assert view.events.selection.copy()
    assert clipboard() == ("First line here.\n\nx = 1\n\nLast line.", REPLY)


def test_a_drag_upwards_and_back_into_the_first_text_selects_as_the_mouse_goes(
    view: ChatView,
) -> None:
    prompt, first, code, last = edits(view)
    drag(last, prompt, to_end=False)
    assert prompt.textCursor().selectedText() == "A prompt"
    assert code.textCursor().selectedText() == "x = 1"
    drag(code, code)
    assert [edit.textCursor().hasSelection() for edit in (prompt, first, last)] == [False] * 3
    assert code.textCursor().selectedText() == "x = 1"


def test_a_part_of_one_block_is_copied_as_it_is_seen(view: ChatView) -> None:
    _, first, _, _ = edits(view)
    cursor = first.textCursor()
    cursor.setPosition(6)
    cursor.setPosition(10, cursor.MoveMode.KeepAnchor)
    first.setTextCursor(cursor)
    view.events.selection.copy()
    assert clipboard()[0] == "line"


def test_all_messages_can_be_selected_and_copied_in_both_ways(view: ChatView) -> None:
    QTest.keySequence(view, "Ctrl+A")
    QTest.keySequence(view, "Ctrl+C")
    assert clipboard() == (
        "A prompt\n\nFirst line here.\n\nx = 1\n\nLast line.",
        f"A prompt\n\n{REPLY}",
    )
    view.events.selection.copy(as_markdown=True)
    assert QGuiApplication.clipboard().text() == f"A prompt\n\n{REPLY}"


def test_nothing_selected_leaves_the_clipboard_alone(view: ChatView) -> None:
    QGuiApplication.clipboard().setText("kept")
    assert not view.events.selection.copy()
    assert QGuiApplication.clipboard().text() == "kept"


def test_a_selection_over_blocks_survives_new_tokens(
    view: ChatView, chat: Conversation, qtbot: Any
) -> None:
    reply = chat.messages[1]
    reply.status = MessageStatus.WRITING
    drag(edits(view)[0], edits(view)[2])
    for piece in (" More", " words and **bold** ones.", "\n\nA new block", "\n\n```\ncode"):
        reply.text += piece
        view.mark_changed(2)
        qtbot.waitUntil(lambda: not view._changed)
    assert [e.textCursor().selectedText() for e in edits(view)[:3]] == [
        "A prompt",
        "First line here.",
        "x = 1",
    ]
    assert not any(edit.textCursor().hasSelection() for edit in edits(view)[3:])


def test_all_of_a_reply_that_is_written_is_what_is_there_when_it_is_copied(
    view: ChatView, chat: Conversation, qtbot: Any
) -> None:
    reply = chat.messages[-1]
    reply.status = MessageStatus.WRITING
    view.events.selection.select_all()
    for words in (" And more.", "\n\nA new paragraph", " grows."):
        reply.text += words
        view.mark_changed(reply.message_id)
        qtbot.waitUntil(lambda words=words: words.strip() in edits(view)[-1].toPlainText())
        shown = [edit.textCursor().selectedText() for edit in edits(view)]
        assert shown == [edit.toPlainText() for edit in edits(view)]
    view.events.selection.copy()
    assert clipboard()[0].endswith("A new paragraph grows.")


def test_a_selection_is_shown_again_where_its_rows_come_back(
    view: ChatView, chat: Conversation, qtbot: Any
) -> None:
    for number in range(3, 80):
        role = Role.USER if number % 2 else Role.ASSISTANT
        chat.messages.append(Message(number, 1, role, f"Message {number}\n\n" + "w " * 400, 0.0))
    view.sync()
    bar = view.verticalScrollBar()
    bar.setValue(0)
    drag(edits(view)[1], edits(view)[2])
    old = view.rows.sections[1].rows[0]
    bar.setValue(bar.maximum())
    assert old.view is None
    assert view.events.selection.copy()
    assert clipboard()[1].startswith("First *line* here.")
    bar.setValue(0)
    assert old.view is not None
    assert old.view.text_edit.textCursor().selectedText() == "First line here."


def test_copy_and_its_menu_work_from_within_a_block(view: ChatView) -> None:
    _, first, code, last = edits(view)
    drag(first, last)
    QTest.keySequence(first, "Ctrl+C")
    assert clipboard() == ("First line here.\n\nx = 1\n\nLast line.", REPLY)
    port = code.viewport()
    event = QContextMenuEvent(
        QContextMenuEvent.Reason.Mouse, QPoint(1, 1), port.mapToGlobal(QPoint(1, 1))
    )
    QApplication.sendEvent(port, event)
    (menu,) = port.findChildren(QMenu)
    assert [action.text() for action in menu.actions()] == [
        "Copy",
        "Copy as Markdown",
        "",
        "Select all messages",
    ]
    menu.actions()[1].trigger()
    assert QGuiApplication.clipboard().text() == REPLY
