"""One message on screen: what it says, how it stands, and that nothing jumps when that changes."""

from __future__ import annotations

import itertools
from typing import Any

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QWidget

from studio.models.chat import Message, MessageStatus, ReplyStats, Role
from studio.views.chat.markdown_view import MarkdownView
from studio.views.chat.message_view import PromptView, ReplyView, make_message_view
from studio.views.chat.prose_view import ProseView
from studio.views.icon_button import IconButton
from studio.views.state_mark import StateMark
from studio.views.theme import Theme


def put(message: Message, theme: Theme, page: QWidget) -> Any:
    view = make_message_view(message, theme, page)
    view.show()
    view.resize(700, view.heightForWidth(700))
    return view


def test_a_prompt_is_shown_as_it_was_typed(theme: Theme, page: QWidget) -> None:
    view = put(Message(1, 1, Role.USER, "**not bold**\n<b>x</b>", 0.0), theme, page)
    assert isinstance(view, PromptView)
    assert view.text() == "**not bold**\n<b>x</b>"


def test_a_short_prompt_has_a_small_bubble_and_a_long_one_wraps(
    theme: Theme, page: QWidget
) -> None:
    short = put(Message(1, 1, Role.USER, "Hi", 0.0), theme, page)
    long = put(Message(2, 1, Role.USER, "word " * 200, 0.0), theme, page)
    assert short.bubble.width() < 100
    assert 0.8 * long.width() < long.bubble.width() < 0.9 * long.width()
    assert long.height() > 3 * short.height()


def test_a_reply_says_how_it_stands_without_changing_its_height(
    theme: Theme, page: QWidget
) -> None:
    message = Message(1, 1, Role.ASSISTANT, "Text.", 0.0, MessageStatus.QUEUED)
    view = put(message, theme, page)
    assert isinstance(view, ReplyView)
    label = view.findChild(QLabel)
    mark = view.findChild(StateMark)
    heights, marks, said = set(), [], []
    for status in (
        MessageStatus.QUEUED,
        MessageStatus.READING,
        MessageStatus.WRITING,
        MessageStatus.PARKED,
    ):
        message.status = status
        view.redraw()
        marks.append(mark.grab().toImage())
        said.append(mark.toolTip())
        assert label.text() == ""
        heights.add(view.heightForWidth(700))
    assert said == ["Queued", "Reading the prompt", "Writing", "Parked"]
    assert all(one != other for one, other in itertools.combinations(marks, 2))
    message.status = MessageStatus.DONE
    message.stats = ReplyStats(completion_tokens=3, tokens_per_s=11.8, first_token_s=0.9)
    view.redraw()
    heights.add(view.heightForWidth(700))
    assert label.text() == "3 tokens · 11.8 tok/s · first token 0.9 s"
    assert len(heights) == 1


def test_the_reply_can_be_copied_as_markdown(theme: Theme, page: QWidget, qtbot: Any) -> None:
    view = put(Message(1, 1, Role.ASSISTANT, "Some **bold** text.", 0.0), theme, page)
    button = next(b for b in view.findChildren(IconButton) if b.accessibleName() == "Copy reply")
    button.click()
    assert QGuiApplication.clipboard().text() == "Some **bold** text."


def test_an_empty_reply_has_nothing_to_copy(theme: Theme, page: QWidget) -> None:
    view = put(Message(1, 1, Role.ASSISTANT, "", 0.0, MessageStatus.QUEUED), theme, page)
    assert not view.findChild(IconButton).isEnabled()


def test_an_interrupted_reply_that_goes_on_grows_from_what_it_had(
    theme: Theme, page: QWidget
) -> None:
    half = "# Title\n\nOne paragraph.\n\n```python\nx = 1\n"
    whole = half + "y = 2\n```\n\nAnd the end."
    message = Message(1, 1, Role.ASSISTANT, half, 0.0, MessageStatus.INTERRUPTED)
    view = put(message, theme, page)
    message.status = MessageStatus.WRITING
    for length in range(len(half), len(whole) + 1):
        message.text = whole[:length]
        view.redraw()
    message.status = MessageStatus.DONE
    view.redraw()
    undisturbed = put(Message(2, 1, Role.ASSISTANT, whole, 0.0, MessageStatus.DONE), theme, page)
    assert shown(view) == shown(undisturbed)


def test_a_text_that_turns_out_shorter_is_shown_anew(theme: Theme, page: QWidget) -> None:
    message = Message(1, 1, Role.ASSISTANT, "One.\n\nTwo and more.", 0.0, MessageStatus.WRITING)
    view = put(message, theme, page)
    message.text = "One.\n\nTwo"
    view.redraw()
    message.text += " is all."
    view.redraw()
    fresh = put(
        Message(2, 1, Role.ASSISTANT, message.text, 0.0, MessageStatus.WRITING), theme, page
    )
    assert shown(view) == shown(fresh)


def shown(view: Any) -> list[str]:
    return [
        piece.toPlainText() if isinstance(piece, ProseView) else piece.text()
        for piece in view.findChild(MarkdownView).pieces
    ]
