"""The transcript: bounded widgets over any length, and a reader who is never pushed away from where they read."""

from __future__ import annotations

import random
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation, Message, MessageStatus, ReplyStats, Role
from studio.views.chat.chat_view import ChatView
from studio.views.chat.code_block import CodeBlock
from studio.views.chat.kit import Kit
from studio.views.chat.markdown_blocks import BlockKind
from studio.views.chat.prose_view import ProseView
from studio.views.chat.quiet_prose import QuietProse
from studio.views.chat.row_views import RowView
from studio.views.chat.sections import Row, RowKind, Section
from studio.views.chat.thought_head import ThoughtHead
from studio.views.frame_ticker import FrameTicker

MOST_VIEWS = 150
"""Of a port of 700 x 500: five times what it shows of the smallest rows."""


def chat_of(num_messages: int, *, words: int = 40) -> Conversation:
    chat = Conversation(1, "Long", 0.0, 0.0, is_loaded=True)
    for number in range(num_messages):
        role = Role.ASSISTANT if number % 2 else Role.USER
        text = f"Message {number}. " + "Some more words. " * words
        chat.messages.append(Message(number + 1, 1, role, text, 0.0))
    return chat


@pytest.fixture
def show(kit: Kit, page: QWidget, qtbot: Any) -> Any:
    """Makes a shown transcript of a chat, laid out and at its end."""
    made = []

    def make(chat: Conversation) -> ChatView:
        view = ChatView(chat, kit, FrameTicker(page), page)
        made.append(view)
        view.resize(700, 500)
        view.show()
        bar = view.verticalScrollBar()
        if len(chat.messages) > 2:
            qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())
        return view

    yield make
    for view in made:
        view.close_view()


def seen(view: ChatView) -> list[tuple[Section[RowView], Row[RowView]]]:
    top = view.verticalScrollBar().value()
    return list(view.rows.rows_between(top, top + view.viewport().height()))


def shown_ids(view: ChatView) -> list[int]:
    """Ids of the messages in the port, from the top."""
    return list(dict.fromkeys(section.message.message_id for section, _ in seen(view)))


def offset_of(view: ChatView, message_id: int) -> int:
    section = view.rows.section_of(message_id)
    assert section is not None
    return section.top - view.verticalScrollBar().value()


def texts(view: ChatView, message_id: int) -> list[str]:
    """What the rows of a message say, those that have a view."""
    section = view.rows.section_of(message_id)
    assert section is not None
    return [
        row.view.text_edit.toPlainText()
        for row in section.rows
        if row.view is not None and row.view.text_edit is not None
    ]


def redraw(view: ChatView, qtbot: Any, message: Message) -> None:
    """Have what a message says now drawn."""
    view.mark_changed(message.message_id)
    qtbot.waitUntil(lambda: not view._changed)


def add_reply(view: ChatView, chat: Conversation, text: str = "") -> Message:
    reply = Message(len(chat.messages) + 1, 1, Role.ASSISTANT, text, 0.0, MessageStatus.WRITING)
    chat.messages.append(reply)
    view.sync()
    return reply


def test_a_chat_of_5000_messages_opens_with_few_widgets(show: Any, qtbot: Any) -> None:
    view = show(chat_of(5000))
    assert shown_ids(view)[-1] == 5000
    assert view.rows.num_made < 40
    assert len(view.findChildren(QWidget)) < 10 * MOST_VIEWS
    assert view.rows.bottom > 5000 * 100


def test_no_amount_of_scrolling_keeps_more_than_what_is_near(show: Any, qtbot: Any) -> None:
    view = show(chat_of(2000, words=3))
    bar, dice = view.verticalScrollBar(), random.Random(1)
    for _ in range(40):
        bar.setValue(dice.randrange(bar.maximum()))
        assert 0 < view.rows.num_views <= MOST_VIEWS
        row = seen(view)[0][1]
        assert row.view is not None
        assert row.view.isVisible()
    qtbot.waitUntil(lambda: len(view.findChildren(QWidget)) < 10 * MOST_VIEWS)


def test_everything_that_is_seen_is_laid_out_wherever_the_reader_goes(show: Any) -> None:
    view = show(chat_of(300))
    bar, dice = view.verticalScrollBar(), random.Random(2)
    for _ in range(30):
        bar.setValue(dice.choice([dice.randrange(bar.maximum()), bar.value() + 100]))
        rows = seen(view)
        assert all(row.is_measured and row.view is not None for _, row in rows)
        tops = [section.top + row.top for section, row in rows]
        assert [row.view.y() for _, row in rows] == tops
        assert tops == sorted(tops)


def test_what_is_read_stays_in_place_while_what_is_above_is_laid_out(show: Any, qtbot: Any) -> None:
    view = show(chat_of(500, words=10))
    bar = view.verticalScrollBar()
    for _ in range(6):
        bar.setValue(bar.value() - 700)
        section, row = seen(view)[0]
        offset = section.top + row.top - bar.value()
        made = view.rows.num_made
        qtbot.waitUntil(lambda made=made: view.rows.num_made > made or not view._later.isActive())
        assert section.top + row.top - bar.value() == offset


def test_the_view_follows_a_growing_reply(show: Any, qtbot: Any) -> None:
    chat = chat_of(11)
    view = show(chat)
    reply = add_reply(view, chat)
    for number in range(40):
        reply.text += f"Paragraph {number}.\n\n"
        view.mark_changed(12)
    bar = view.verticalScrollBar()
    qtbot.waitUntil(lambda: view.rows.section_of(12).height > 1000 and bar.value() == bar.maximum())
    assert view.sticks


def test_the_view_yields_to_a_reader_who_scrolled_away(show: Any, qtbot: Any) -> None:
    chat = chat_of(12)
    chat.messages[-1].status = MessageStatus.WRITING
    view = show(chat)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() - 300)
    assert not view.sticks
    assert view.to_end_button.isVisible()
    assert view.to_end_button.accessibleName() == "To the end"
    offset = offset_of(view, 12)
    chat.messages[-1].text += "\n\nNew paragraph." * 50
    view.mark_changed(12)
    qtbot.waitUntil(lambda: view.rows.section_of(12).height > 1000)
    assert offset_of(view, 12) == offset
    view.to_end_button.setFocus()
    view.to_end_button.click()
    assert QApplication.focusWidget() is view, "not at whatever comes next"
    assert bar.value() == bar.maximum()
    assert view.sticks
    assert not view.to_end_button.isVisible()


def test_a_chat_that_is_shown_again_is_where_the_reader_left_it(show: Any) -> None:
    chat = chat_of(60)
    view = show(chat)
    assert view.place is None
    view.verticalScrollBar().setValue(1700)
    ids, place, offset = shown_ids(view), view.place, offset_of(view, shown_ids(view)[0])
    again = show(chat)
    again.go_to(place)
    assert (shown_ids(again), offset_of(again, ids[0])) == (ids, offset)
    assert not again.sticks
    assert again.to_end_button.isVisible()
    again.scroll_to_end()
    assert again.place is None


def test_a_block_that_has_ended_is_never_rendered_again(show: Any, qtbot: Any) -> None:
    chat = chat_of(3)
    view = show(chat)
    reply = add_reply(view, chat)
    text = "One *paragraph*.\n\nA second.\n\n- a\n- b\n\nThe last one."
    for end in range(1, len(text) + 1):
        reply.text = text[:end]
        redraw(view, qtbot, reply)
        if end == text.index("- a"):
            rows = list(view.rows.section_of(4).rows[:2])
            views = [row.view for row in rows]
            renders = [row.view.num_renders for row in rows]
            documents = [row.view.document() for row in rows]
    reply.status = MessageStatus.DONE
    redraw(view, qtbot, reply)
    assert view.rows.section_of(4).rows[:2] == rows
    assert [row.view for row in rows] == views
    assert [row.view.num_renders for row in rows] == renders
    assert [row.view.document() for row in rows] == documents


@pytest.mark.parametrize("step", [1, 7])
def test_a_token_has_at_most_the_last_blocks_parsed(show: Any, qtbot: Any, step: int) -> None:
    chat = chat_of(3)
    view = show(chat)
    reply = add_reply(view, chat)
    text = "Some words in a paragraph that goes on.\n\n```py\nx = 1\n```\n\n" * 8
    parsed = 0
    for end in range(0, len(text), step):
        reply.text = text[:end]
        view.rows.update(view.rows.section_of(4))
        now = view.rows.section_of(4).num_parsed
        assert now - parsed <= 2
        parsed = now


def test_words_of_a_streaming_paragraph_are_added_not_rendered(show: Any, qtbot: Any) -> None:
    chat = chat_of(3)
    view = show(chat)
    reply = add_reply(view, chat, "It begins here")
    for word in ["and", "goes", "on", "with", "words"] * 20:
        reply.text += f" {word}"
        view.rows.update(view.rows.section_of(4))
    row = view.rows.section_of(4).rows[0]
    assert isinstance(row.view, ProseView)
    assert row.view.num_renders == 1
    assert row.view.toPlainText() == reply.text


def test_what_is_out_of_sight_is_not_rendered_while_it_grows(show: Any, qtbot: Any) -> None:
    chat = chat_of(200)
    view = show(chat)
    reply = add_reply(view, chat)
    view.verticalScrollBar().setValue(0)
    qtbot.waitUntil(lambda: not view._later.isActive())
    made = view.rows.num_made
    for number in range(50):
        reply.text += f"Paragraph *{number}*.\n\n"
        redraw(view, qtbot, reply)
    assert view.rows.num_made == made
    view.scroll_to_end()
    assert "Paragraph 49." in texts(view, reply.message_id)


def test_an_interrupted_reply_that_goes_on_ends_as_one_that_never_was(
    show: Any, qtbot: Any
) -> None:
    half = "# Title\n\nOne paragraph.\n\n```python\nx = 1\n"
    whole = half + "y = 2\n```\n\nAnd the end."
    chat = chat_of(1)
    chat.messages.append(Message(2, 1, Role.ASSISTANT, half, 0.0, MessageStatus.INTERRUPTED))
    chat.messages.append(Message(3, 1, Role.ASSISTANT, whole, 0.0))
    view = show(chat)
    message = chat.messages[1]
    message.status = MessageStatus.WRITING
    for length in range(len(half), len(whole) + 1):
        message.text = whole[:length]
        redraw(view, qtbot, message)
    message.status = MessageStatus.DONE
    redraw(view, qtbot, message)
    view.verticalScrollBar().setValue(0)
    assert texts(view, 2) == texts(view, 3)


def test_a_text_that_turns_out_shorter_is_shown_anew(show: Any, qtbot: Any) -> None:
    chat = chat_of(1)
    view = show(chat)
    reply = add_reply(view, chat, "One.\n\nTwo and more.\n\n```\ncode")
    reply.text = "One.\n\nTwo"
    redraw(view, qtbot, reply)
    reply.text += " is all."
    redraw(view, qtbot, reply)
    assert texts(view, 2) == ["One.", "Two is all."]


def test_other_versions_of_the_last_messages_take_their_place(show: Any) -> None:
    chat = chat_of(10)
    view = show(chat)
    kept = view.rows.sections[7]
    chat.messages[8:] = [
        Message(21, 1, Role.USER, "Another prompt", 0.0),
        Message(22, 1, Role.ASSISTANT, "Another answer", 0.0),
    ]
    view.sync()
    assert view.rows.sections[7] is kept
    assert texts(view, 22) == ["Another answer"]
    assert view.rows.section_of(9) is None


THINKING = "<think>\nHm, *so*.\n\n```py\nx\n```\n</think>\n\nThe answer."


def thought_rows(view: ChatView, message_id: int) -> list[Row[RowView]]:
    section = view.rows.section_of(message_id)
    assert section is not None
    return [row for row in section.rows if row.block.is_thought]


def test_thinking_is_open_while_it_runs_and_folds_when_it_is_over(show: Any, qtbot: Any) -> None:
    chat = chat_of(1)
    view = show(chat)
    reply = add_reply(view, chat)
    for end in range(1, len(THINKING) + 1):
        reply.text = THINKING[:end]
        redraw(view, qtbot, reply)
        if "Hm," in reply.text and "</think>" not in reply.text:
            assert not any(row.is_hidden for row in thought_rows(view, 2))
    reply.status, reply.stats = MessageStatus.DONE, ReplyStats(thought_s=4.2)
    redraw(view, qtbot, reply)
    head = view.rows.section_of(2).rows[0].view
    assert isinstance(head, ThoughtHead)
    assert head.button.text() == "Thought for 4 s"
    assert all(row.is_hidden for row in thought_rows(view, 2))
    head.button.click()
    assert not any(row.is_hidden for row in thought_rows(view, 2))
    kinds = [type(row.view) for row in thought_rows(view, 2)]
    assert kinds == [QuietProse, CodeBlock]
    head.button.click()
    assert all(row.is_hidden for row in thought_rows(view, 2))


def test_thinking_that_is_being_read_does_not_fold_under_the_reader(show: Any, qtbot: Any) -> None:
    chat = chat_of(4)
    view = show(chat)
    reply = add_reply(view, chat, "<think>\n" + "A thought.\n\n" * 60)
    redraw(view, qtbot, reply)
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() - 400)
    reply.text += "</think>\n\nThe answer."
    redraw(view, qtbot, reply)
    assert not any(row.is_hidden for row in thought_rows(view, 5))


def test_a_long_prompt_is_laid_out_in_pieces(show: Any) -> None:
    chat = chat_of(2)
    chat.messages[0].text = "\n".join(f"line {number}" for number in range(20_000))
    view = show(chat)
    rows = view.rows.section_of(1).rows
    assert len(rows) > 40
    assert "\n".join(row.block.text for row in rows[:-1]) == chat.messages[0].text
    assert view.rows.num_made < 20


def test_a_prompt_is_shown_as_it_was_typed(show: Any) -> None:
    chat = chat_of(1)
    chat.messages[0].text = "**not bold**\n<b>x</b> $x$"
    view = show(chat)
    assert texts(view, 1) == ["**not bold**\n<b>x</b> $x$"]


def test_home_and_end_move_through_the_transcript(show: Any, qtbot: Any) -> None:
    view = show(chat_of(40))
    bar = view.verticalScrollBar()
    QTest.keyClick(view, Qt.Key.Key_Home)
    assert bar.value() == 0
    assert shown_ids(view)[0] == 1
    QTest.keyClick(view, Qt.Key.Key_End)
    assert bar.value() == bar.maximum()
    assert view.sticks


def test_the_scroll_bars_coming_wraps_no_line_anew(show: Any, qtbot: Any) -> None:
    chat = chat_of(2, words=5)
    view = show(chat)
    width = view.rows.width
    assert view.verticalScrollBar().maximum() == 0
    chat.messages += chat_of(12).messages[2:]
    view.sync()
    qtbot.waitUntil(lambda: view.verticalScrollBar().isVisible())
    assert view.rows.width == width


def test_another_width_keeps_what_is_read_in_place(show: Any, qtbot: Any) -> None:
    view = show(chat_of(60))
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    first = shown_ids(view)[0]
    for width in (500, 900, 640):
        view.resize(width, 500)
        qtbot.waitUntil(lambda w=width: view.width() == w)
        assert abs(shown_ids(view)[0] - first) <= 1
        assert all(row.view.width() == view.rows.width for _, row in seen(view))


def test_an_empty_chat_has_no_rows(show: Any) -> None:
    assert show(chat_of(0)).rows.num_views == 0


def test_every_kind_of_block_has_its_row(show: Any) -> None:
    chat = chat_of(1)
    text = "A.\n\n```py\nx\n```\n\n$$\nx\n$$\n\n| a |\n|---|\n| b |"
    chat.messages.append(Message(2, 1, Role.ASSISTANT, text, 0.0))
    view = show(chat)
    rows = view.rows.section_of(2).rows
    assert [(row.kind, row.block.kind) for row in rows] == [
        (RowKind.BLOCK, BlockKind.PROSE),
        (RowKind.BLOCK, BlockKind.CODE),
        (RowKind.BLOCK, BlockKind.FORMULA),
        (RowKind.BLOCK, BlockKind.PROSE),
        (RowKind.FOOT, BlockKind.PROSE),
    ]
    assert all(row.height > 10 for row in rows)


def test_files_of_a_prompt_are_named_above_it(show: Any) -> None:
    chat = chat_of(2)
    files = (
        Attachment(name="a long report.pdf", kind=AttachmentKind.PDF, text="x", num_tokens=1200),
        Attachment(name="notes.md", kind=AttachmentKind.TEXT),
    )
    chat.messages[0].attachments = files
    chat.messages.append(Message(3, 1, Role.USER, "", 0.0, attachments=files))
    view = show(chat)
    kinds = [row.kind for row in view.rows.section_of(1).rows]
    assert kinds == [RowKind.FILES, RowKind.PROMPT, RowKind.FOOT]
    assert [row.kind for row in view.rows.section_of(3).rows] == [RowKind.FILES, RowKind.FOOT]
    names = view.rows.section_of(3).rows[0].view.accessibleName()
    assert (
        names == "Files: a long report.pdf · PDF · 1,200 tokens, notes.md · Text · not counted yet"
    )
    assert view.rows.section_of(3).rows[0].height >= 28


def test_the_keyboard_goes_from_message_to_message_and_brings_them_into_sight(
    show: Any, page: QWidget, qtbot: Any
) -> None:
    chat = chat_of(30)
    view = show(chat)
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow)
    view.foot_of(chat.messages[-1]).take_focus()
    for number in range(30, 20, -1):
        focused = QApplication.focusWidget()
        assert focused is not None
        assert view.foot_of(chat.messages[number - 1]).isAncestorOf(focused)
        y = focused.mapTo(view.viewport(), focused.rect().center()).y()
        assert 0 <= y < view.viewport().height()
        QTest.keyClick(focused, Qt.Key.Key_Up)
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Down)
    assert view.foot_of(chat.messages[20]).isAncestorOf(QApplication.focusWidget())


def test_what_turns_out_to_be_no_formula_becomes_prose(show: Any, qtbot: Any) -> None:
    chat = chat_of(1)
    view = show(chat)
    reply = add_reply(view, chat)
    for text in (
        "$$\nsome words",
        "$$\nsome words\nand more\n",
        "$$\nsome words\nand more\n\nNew.",
    ):
        reply.text = text
        redraw(view, qtbot, reply)
    assert texts(view, 2) == ["$$ some words and more", "New."]
