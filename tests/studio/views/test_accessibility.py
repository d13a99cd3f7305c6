"""Everything has a name for a screen reader, can be reached by keyboard, and long or foreign words do no harm."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QLabel,
    QLineEdit,
    QListView,
    QPlainTextEdit,
    QScrollArea,
    QTextEdit,
    QWidget,
)

from engine.api import EngineState
from engine.runs import RunState
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from studio.views.actions import CommandId
from studio.views.chat.code_block import CodeBlock
from studio.views.chat.foot_view import MessageAction
from studio.views.icon_button import IconButton
from studio.views.model_selector import ModelSelector
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.top_bar import TopBar

Play = Callable[[Coroutine[Any, Any, None]], None]
CONTROLS = (QAbstractButton, QLineEdit, QListView, QPlainTextEdit, QTextEdit, QScrollArea)


async def fill(stage: Stage) -> None:
    """Two panes, a reply with every kind of piece, a notice."""
    chat, other = stage.chats.chats[:2]
    request_id = await stage.ask(chat, "Hello?")
    stage.engine.start(request_id)
    stage.engine.say(request_id, "A [link](https://example.org).\n\n```py\nx = 1\n```\n")
    stage.engine.finish(request_id)
    await stage.window.panes.split(other)
    pane = stage.window.panes.panes[0]
    await until(lambda: pane.transcript is not None and pane.findChild(CodeBlock) is not None)
    foot = pane.transcript.foot_of(chat.messages[-1])
    await until(lambda: foot.buttons and foot.buttons[MessageAction.COPY].isEnabled())


def unnamed(window: QWidget) -> list[str]:
    """Controls on screen that a screen reader could not name."""
    found = []
    for kind in CONTROLS:
        for widget in window.findChildren(kind):
            interface = QAccessible.queryAccessibleInterface(widget)
            name = interface.text(QAccessible.Text.Name) if interface else ""
            is_inner = widget.objectName().startswith("qt_")
            if widget.isVisible() and not is_inner and not name.strip():
                found.append(f"{type(widget).__name__} {widget.objectName()}")
    return found


def test_every_control_has_a_name(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            await fill(stage)
            assert unnamed(stage.window) == []

    play(story())


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_enter_presses_a_button_as_space_does(play: Play, tmp_path: Path, key: Qt.Key) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            sidebar, top = stage.window.findChild(Sidebar), stage.window.findChild(TopBar)
            button = top.findChild(IconButton)
            button.setFocus()
            await until(button.hasFocus)
            QTest.keyClick(button, key)
            assert not sidebar.isVisible()

    play(story())


def test_a_parked_chat_and_the_pool_panel_have_names_too(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            request_id = await stage.ask(stage.chats.chats[0], "Hello?")
            stage.engine.publish(
                make_run(request_id, RunState.PARKED, wait=make_wait()), make_run("chatcmpl-1")
            )
            stage.window.commands[CommandId.POOL].trigger()
            await until(lambda: len(stage.window.pool_panel.rows) == 2)
            await until(stage.window.panes.active.strip.first_button.isVisible)
            assert unnamed(stage.window) == []
            row = stage.window.pool_panel.rows[request_id]
            assert row.first_button.accessibleName() == "Let it go first: B"

    play(story())


def test_the_first_launch_has_names_too(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            assert unnamed(stage.window) == []

    play(story())


def test_tab_reaches_every_control_and_comes_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            await fill(stage)
            stage.window.activateWindow()
            stage.window.panes.active.composer.setFocus()
            start = QApplication.focusWidget()
            seen: list[QWidget] = []
            spots: list[QPoint] = []
            for _ in range(80):
                QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
                now = QApplication.focusWidget()
                if now is start:
                    break
                assert now is not None
                seen.append(now)
                spots.append(now.mapTo(stage.window, QPoint(0, 0)))
            else:
                pytest.fail("Tab does not come back to where it began")
            names = {widget.accessibleName() for widget in seen}
            assert {
                "Chats",
                "Search chats",
                "Messages",
                "Copy",
                "Copy code",
            } <= names
            assert any(isinstance(widget, ModelSelector) for widget in seen)
            pane = stage.window.panes.panes[0]
            inside = [spot.y() for w, spot in zip(seen, spots, strict=True) if pane.owns(w)]
            assert inside == sorted(inside)

    play(story())


def press(keys: str) -> None:
    """Type a key combination where the focus is."""
    combination = QKeySequence(keys)[0]
    QTest.keyClick(QApplication.focusWidget(), combination.key(), combination.keyboardModifiers())


def test_keys_do_what_the_menus_say(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            window, chat = stage.window, stage.chats.chats[0]
            window.activateWindow()
            await until(lambda: isinstance(QApplication.focusWidget(), QPlainTextEdit))
            request_id = await stage.ask(chat, "Hello?")
            press("Esc")
            await until(lambda: request_id in stage.engine.aborted)
            press("Ctrl+Tab")
            await until(lambda: window.panes.active.chat is stage.chats.chats[1])
            press("Ctrl+Shift+Tab")
            await until(lambda: window.panes.active.chat is chat)
            press("Ctrl+\\")
            await until(lambda: len(window.panes.panes) == 2 and window.panes.panes[1].chat)
            press("F6")
            assert window.panes.active is window.panes.panes[0]
            press("Ctrl+W")
            await until(lambda: len(window.panes.panes) == 1)
            press("Ctrl+K")
            assert isinstance(QApplication.focusWidget(), QLineEdit)
            press("Ctrl+N")
            await until(lambda: window.panes.active.chat.title == "New chat")
            press("Ctrl+B")
            assert not window.findChild(Sidebar).isVisible()
            press("F2")
            assert window.findChild(Sidebar).isVisible()
            assert QApplication.focusWidget().property("text") == "New chat"

    play(story())


@pytest.mark.parametrize(
    "title",
    [
        "x" * 200,
        "Donaudampfschifffahrtsgesellschaft " * 5,
        "مرحبا بالعالم " * 8,
        "一二三四五六七八九十" * 10,
        "<b>x</b>",
    ],
)
def test_any_title_leaves_the_window_its_size(play: Play, tmp_path: Path, title: str) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            least = stage.window.minimumSizeHint().width()
            for chat in list(stage.chats.chats):
                await stage.chats.rename(chat, title)
            stage.window.grab()
            assert stage.window.minimumSizeHint().width() <= least
            await stage.window.panes.split(stage.chats.chats[1])
            assert stage.window.minimumSizeHint().width() <= 1000
            shown = [label.text() for label in stage.window.findChildren(QLabel, "paneTitle")]
            assert shown == [" ".join(title.split())] * 2

    play(story())
