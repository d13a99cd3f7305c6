"""The line under a message: what it says, and buttons for the mouse and for the keyboard."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from studio.models.chat import Message, MessageStatus, ReplyStats, Role
from studio.views.chat.foot_view import FootView, MessageAction
from studio.views.chat.kit import Kit
from studio.views.elided_label import ElidedLabel
from studio.views.state_mark import StateMark

ALL = frozenset({*MessageAction} - {MessageAction.EDIT, MessageAction.CONTINUE})


def put(message: Message, kit: Kit, page: QWidget) -> FootView:
    foot = FootView(message, kit, page)
    foot.resize(700, foot.heightForWidth(700))
    foot.show()
    return foot


def reply(status: MessageStatus = MessageStatus.DONE) -> Message:
    return Message(1, 1, Role.ASSISTANT, "Text.", 0.0, status)


def test_a_reply_says_how_it_stands_without_changing_its_height(kit: Kit, page: QWidget) -> None:
    message = reply(MessageStatus.QUEUED)
    foot = put(message, kit, page)
    label, mark = foot.findChild(QLabel), foot.findChild(StateMark)
    heights, marks, said = set(), [], []
    for status in (
        MessageStatus.QUEUED,
        MessageStatus.READING,
        MessageStatus.WRITING,
        MessageStatus.PARKED,
    ):
        message.status = status
        foot.refresh()
        marks.append(mark.grab().toImage())
        said.append(mark.toolTip())
        assert label.text() == ""
        heights.add(foot.heightForWidth(700))
        message.stats = ReplyStats(completion_tokens=3, tokens_per_s=11.8)  # no token changes it
        foot.refresh()
        assert mark.toolTip() == said[-1]
    assert said == ["Queued", "Reading the prompt", "Writing", "Parked"]
    assert all(one != other for one, other in itertools.combinations(marks, 2))
    message.status = MessageStatus.DONE
    message.stats = ReplyStats(completion_tokens=3, tokens_per_s=11.8, first_token_s=0.9)
    foot.refresh()
    heights.add(foot.heightForWidth(700))
    assert "3 tokens · 11.8 tok/s · first token 0.9 s" in label.text()
    assert len(heights) == 1


def test_a_figure_is_seen_whole_or_not_at_all(kit: Kit, page: QWidget) -> None:
    message = reply()
    message.stats = ReplyStats(
        completion_tokens=312, tokens_per_s=11.8, first_token_s=0.9, parked_s=8.2
    )
    foot = put(message, kit, page)
    label = foot.findChild(ElidedLabel)
    full = "312 tokens · 11.8 tok/s · parked 8.2 s · first token 0.9 s"
    seen = {label.shown(width) for width in range(120, 700, 7)}
    parts = full.split(" · ")
    assert seen == {" · ".join(parts[:number]) for number in range(1, 5)}
    assert all(part in label.toolTip() for part in parts)


def test_the_mark_of_a_reply_that_writes_is_in_the_first_line(kit: Kit, page: QWidget) -> None:
    foot = put(reply(MessageStatus.WRITING), kit, page)
    mark = foot.findChild(StateMark)
    wide = mark.y()
    foot.resize(300, foot.heightForWidth(300))
    foot.layout().activate()
    assert mark.y() == wide


def test_buttons_are_made_only_when_somebody_comes_near(kit: Kit, page: QWidget) -> None:
    foot = put(reply(), kit, page)
    assert foot.buttons == {}
    foot.set_revealed(is_revealed=True)
    assert foot.shows_buttons
    foot.set_revealed(is_revealed=False)
    assert not foot.shows_buttons


def test_the_keyboard_finds_the_buttons_as_one_stop(kit: Kit, page: QWidget, qtbot: Any) -> None:
    foot = put(reply(), kit, page)
    foot.show_actions(ALL, (1, 1))
    page.activateWindow()
    qtbot.waitUntil(page.isActiveWindow)
    foot.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(lambda: bool(foot.buttons))
    assert foot.shows_buttons
    names = []
    for _ in range(4):
        names.append(QApplication.focusWidget().accessibleName())
        tab = [b for b in foot.buttons.values() if b.focusPolicy() is Qt.FocusPolicy.StrongFocus]
        assert tab == [QApplication.focusWidget()]
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Right)
    assert names == ["Copy", "Answer again", "Branch from here", "Delete"]
    assert QApplication.focusWidget().accessibleName() == "Copy"
    steps: list[int] = []
    foot.neighbour_wanted.connect(steps.append)
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Up)
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Down)
    assert steps == [-1, 1]


def test_a_button_says_what_is_wanted(kit: Kit, page: QWidget) -> None:
    foot = put(reply(), kit, page)
    foot.show_actions(ALL, (2, 3))
    wanted: list[object] = []
    foot.wanted.connect(wanted.append)
    for action in (MessageAction.REGENERATE, MessageAction.PREVIOUS, MessageAction.NEXT):
        foot.buttons[action].click()
    assert wanted == [MessageAction.REGENERATE, MessageAction.PREVIOUS, MessageAction.NEXT]
    assert foot.buttons[MessageAction.EDIT].isHidden()


@pytest.mark.parametrize(
    ("number", "enabled"), [(1, (False, True)), (2, (True, True)), (3, (True, False))]
)
def test_versions_are_counted_and_stepped(
    kit: Kit, page: QWidget, number: int, enabled: tuple[bool, bool]
) -> None:
    foot = put(reply(), kit, page)
    foot.show_actions(ALL, (number, 3))
    shown = [label.text() for label in foot.findChildren(QLabel)]
    assert f"{number}/3" in shown
    buttons = foot.buttons[MessageAction.PREVIOUS], foot.buttons[MessageAction.NEXT]
    assert tuple(button.isEnabled() for button in buttons) == enabled


def test_an_empty_reply_has_nothing_to_copy(kit: Kit, page: QWidget) -> None:
    message = reply(MessageStatus.QUEUED)
    message.text = ""
    foot = put(message, kit, page)
    foot.set_revealed(is_revealed=True)
    assert not foot.buttons[MessageAction.COPY].isEnabled()


@pytest.mark.parametrize("width", [240, 300, 479, 480, 700])
def test_buttons_never_take_the_room_of_the_words(kit: Kit, page: QWidget, width: int) -> None:
    message = reply(MessageStatus.LENGTH)
    message.stats = ReplyStats(completion_tokens=577, tokens_per_s=69.0, first_token_s=0.9)
    foot = FootView(message, kit, page)
    foot.resize(width, foot.heightForWidth(width))
    foot.show()
    label = foot.findChild(QLabel)
    foot.show_actions(frozenset(MessageAction), (1, 1))
    foot.set_revealed(is_revealed=True)
    QApplication.processEvents()
    shown = [b.geometry() for b in foot.buttons.values() if not b.isHidden()]
    assert all(foot.rect().contains(one) for one in shown)
    assert not any(one.intersects(label.geometry()) for one in shown)
    assert label.width() >= min(200, width - 40)
