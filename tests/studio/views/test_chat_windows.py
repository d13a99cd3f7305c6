"""Chats in windows of their own: one place for each chat, live while the main window is hidden, closed with it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from engine.api import EngineState
from fakes.fake_window import Stage, open_stage, until
from studio.models.chat import Conversation, MessageStatus
from studio.views.actions import COMMANDS, CommandId
from studio.views.chat_window_commands import ONLY_IN_MAIN, ChatWindowCommands
from studio.views.chat_windows import ChatWindow
from studio.views.sidebar.conversation_list import Sidebar

Play = Callable[[Coroutine[Any, Any, None]], None]


async def in_own_window(stage: Stage, chat: Conversation) -> ChatWindow:
    await stage.window.panes.show_chat(chat)
    stage.window.commands[CommandId.OWN_WINDOW].trigger()
    windows = stage.window.chat_commands.windows.windows
    await until(lambda: chat in windows and windows[chat].pane.chat is chat)
    return windows[chat]


def test_a_chat_moves_into_its_window_and_streams_there(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            chat, other = stage.chats.chats
            window = await in_own_window(stage, chat)
            assert stage.window.panes.active.chat is other
            assert window.windowTitle() == "B"
            await stage.chats.rename(chat, "Renamed")
            assert window.windowTitle() == "Renamed"
            stage.window.hide()
            request_id = await stage.ask(chat, "Hello?")
            stage.engine.start(request_id)
            before = stage.window.context.frames.num_flushes
            stage.engine.say(request_id, "Hi there")
            await until(lambda: stage.window.context.frames.num_flushes > before)
            QTest.keyClick(window, Qt.Key.Key_Escape)
            await until(lambda: chat.messages[-1].status is MessageStatus.STOPPED)
            stage.window.show()

    play(story())


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_picking_a_chat_that_has_a_window_leaves_the_panes_as_they_are(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            chat = stage.chats.chats[0]
            window = await in_own_window(stage, chat)
            before = stage.window.panes.active.chat
            stage.window.findChild(Sidebar).chosen.emit(chat, None)
            await until(lambda: not stage.window.context.tasks.num_running)
            assert stage.window.panes.active.chat is before
            assert stage.window.panes.pane_of(chat) is None
            assert window.isVisible()
            stage.window.commands[CommandId.NEXT_CHAT].trigger()
            await until(lambda: stage.window.panes.active.chat not in (before, chat))

    play(story())


def test_a_window_closes_with_its_chat_and_its_draft_is_kept(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            chat = stage.chats.chats[0]
            window = await in_own_window(stage, chat)
            window.pane.composer.edited.emit("half a thought")
            window.close()
            assert chat.draft == "half a thought"
            await stage.window.panes.show_chat(chat)
            assert stage.window.panes.active.composer.text() == "half a thought"
            await in_own_window(stage, chat)
            await stage.chats.delete(chat)
            await until(lambda: chat not in stage.window.chat_commands.windows.windows)

    play(story())


def test_what_works_for_a_chat_in_the_main_window_works_in_its_own(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            chat = stage.chats.chats[0]
            await stage.ask(chat, "Hello?")
            commands: list[ChatWindowCommands] = []
            windows = stage.window.chat_commands.windows
            equip = windows.equip
            windows.equip = lambda window: commands.append(equip(window))  # type: ignore[arg-type]
            window = await in_own_window(stage, chat)
            own = commands[0].commands
            missing = {command.id for command in COMMANDS} - {one.id for one in own.commands}
            assert missing == ONLY_IN_MAIN
            await until(own[CommandId.STOP].isEnabled)
            own[CommandId.STOP].trigger()
            await until(lambda: chat.messages[-1].status is MessageStatus.STOPPED)
            assert not own[CommandId.STOP].isEnabled()
            assert own[CommandId.CONTINUE].isEnabled()
            own[CommandId.ANSWER_AGAIN].trigger()
            await until(lambda: chat.running_message is not None)
            assert len(chat.versions_of(chat.messages[-1])) == 2
            own[CommandId.FIND].trigger()
            assert window.pane.find_bar.isVisible()
            own[CommandId.INSPECTOR].trigger()
            assert window.inspector.isVisible()
            commands[0].open_palette()
            assert "Export this chat" in [entry.text for entry in commands[0].palette.shown]
            own[CommandId.PIN_CHAT].trigger()
            assert chat.is_pinned
            own[CommandId.SETTINGS].trigger()
            assert stage.window.settings_window.dialog is not None

    play(story())


@pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
def test_a_chats_own_window_renames_it_and_gives_it_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            chat = stage.chats.chats[0]
            commands: list[ChatWindowCommands] = []
            windows = stage.window.chat_commands.windows
            equip = windows.equip
            windows.equip = lambda window: commands.append(equip(window))  # type: ignore[arg-type]
            await in_own_window(stage, chat)
            dialog = commands[0].ask_for_title()
            dialog.setTextValue("Lisbon")
            dialog.accept()
            await until(lambda: chat.title == "Lisbon")
            commands[0].commands[CommandId.OWN_WINDOW].trigger()
            await until(lambda: stage.window.panes.active.chat is chat)
            assert not windows.windows

    play(story())


def test_a_notice_is_seen_in_a_chats_own_window_too(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",), state=EngineState.NO_MODEL) as stage:
            window = await in_own_window(stage, stage.chats.chats[0])
            window.pane.composer.submitted.emit("Hello?")
            assert window.notice_bar.isVisible()

    play(story())


def test_the_windows_close_with_the_main_window(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            window = await in_own_window(stage, stage.chats.chats[0])
            stage.window.close()
            assert not window.isVisible()

    play(story())
