"""Quitting and starting again: at once where nobody runs, else after a question; the window comes back as it was."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QApplication, QMessageBox, QPushButton

from engine.api import EngineState
from engine.runs import RunState
from fakes.fake_engine import TINY_MODEL
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.shots import shoot
from studio.models.what_ran import WhatRan
from studio.models.window_settings import Language
from studio.views.actions import CommandId
from studio.views.settings.pending_bar import PendingBars
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]


def is_closed(stage: Stage) -> bool:
    return not stage.window.isVisible()


def button(box: QMessageBox, text: str) -> QPushButton:
    return next(one for one in box.findChildren(QPushButton) if one.text() == text)


async def two_running(stage: Stage) -> None:
    first, second = [await stage.ask(chat, "Hello?") for chat in stage.chats.chats[:2]]
    stage.engine.start(first)
    stage.engine.publish(
        make_run(first), make_run(second, RunState.PARKED, wait=make_wait()), make_run("chatcmpl-7")
    )


def close_by_hand(stage: Stage) -> None:
    """What the button of the window's frame does."""
    QApplication.sendEvent(stage.window.windowHandle(), QCloseEvent())


@pytest.mark.parametrize("way", ["command", "frame"])
def test_while_nobody_runs_quitting_asks_nothing(play: Play, tmp_path: Path, way: str) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            if way == "command":
                stage.window.commands[CommandId.QUIT].trigger()
            else:
                close_by_hand(stage)
            await stage.window.wait_closed()
            assert stage.services.restarts.what_ran is None

    play(story())


@pytest.mark.parametrize("way", ["command", "frame"])
def test_while_replies_run_quitting_asks_and_a_no_changes_nothing(
    play: Play, tmp_path: Path, way: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            await two_running(stage)
            flow = stage.window.quit_flow

            async def wish() -> QMessageBox:
                if way == "command":
                    stage.window.commands[CommandId.QUIT].trigger()
                else:
                    close_by_hand(stage)
                await until(lambda: flow.dialog is not None)
                assert flow.dialog is not None
                return flow.dialog

            box = await wish()
            assert box.text() == tr("Quit while replies run?")
            for name in ("Children", "Lisbon (", f"{tr('API request')} 7"):
                assert name in box.informativeText()
            shoot(box, "quit-question")
            button(box, tr("Cancel")).click()
            await until(lambda: flow.dialog is None)
            assert not is_closed(stage)
            assert stage.engine.aborted == []
            button(await wish(), tr("Quit")).click()
            await stage.window.wait_closed()

    play(story())


def test_a_change_of_language_offers_to_start_again_at_once(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.settings_window.open()
            bars = stage.window.settings_window.dialog.findChild(PendingBars)
            assert not bars.restart.isVisible()
            stage.services.settings.change("appearance.language", Language.ENGLISH)
            await until(bars.restart.isVisible)
            shoot(stage.window.settings_window.dialog, "restart-bar")
            stage.services.settings.reset("appearance.language")
            await until(lambda: not bars.restart.isVisible())
            stage.services.settings.change("appearance.language", Language.ENGLISH)
            bars.restart.button.click()
            await stage.window.wait_closed()
            assert stage.services.restarts.what_ran is not None

    play(story())


def test_of_a_temporary_chat_that_writes_nothing_is_promised(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=()) as stage:
            chat = await stage.chats.new_chat(is_temporary=True)
            request_id = await stage.ask(chat, "Hello?")
            stage.engine.start(request_id)
            flow = stage.window.quit_flow
            flow.quit()
            assert flow.dialog is not None
            told = flow.dialog.informativeText().split("\n\n")
            assert told[1:] == [tr("1 temporary chat is not kept.")]
            button(flow.dialog, tr("Quit")).click()
            await stage.window.wait_closed()

    play(story())


def test_starting_again_asks_where_something_would_be_lost(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            flow, restarts = stage.window.quit_flow, stage.services.restarts
            temporary = await stage.chats.new_chat(is_temporary=True)
            stage.chats.set_draft(temporary, "Not to be lost")
            flow.restart()
            assert flow.dialog is not None
            assert flow.dialog.informativeText() == tr("1 temporary chat is not kept.")
            button(flow.dialog, tr("Cancel")).click()
            await until(lambda: flow.dialog is None)
            assert restarts.what_ran is None
            await two_running(stage)
            flow.restart()
            assert tr("Restart Layby while replies run?") == flow.dialog.text()
            button(flow.dialog, tr("Restart")).click()
            await stage.window.wait_closed()
            assert restarts.what_ran is not None

    play(story())


def test_quitting_asks_about_temporary_chats_and_promises_them_nothing(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            flow = stage.window.quit_flow
            temporary = await stage.chats.new_chat(is_temporary=True)
            request_id = await stage.ask(temporary, "Between us")
            stage.engine.start(request_id)
            stage.engine.publish(make_run(request_id))
            flow.quit()
            assert flow.dialog is not None
            assert flow.dialog.text() == tr("Quit while replies run?")
            names, gone = flow.dialog.informativeText().split("\n\n")
            assert "Between us" in names
            assert gone == tr("1 temporary chat is not kept.")
            button(flow.dialog, tr("Cancel")).click()
            await until(lambda: flow.dialog is None)
            stage.engine.finish(request_id)
            await until(lambda: temporary.running_message is None)
            stage.engine.publish()
            flow.quit()
            assert flow.dialog is not None
            assert flow.dialog.text() == tr("Quit Layby?")
            assert flow.dialog.informativeText() == tr("1 temporary chat is not kept.")
            button(flow.dialog, tr("Quit")).click()
            await stage.window.wait_closed()

    play(story())


def test_a_signal_and_the_end_of_everything_ask_nothing(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path / "signal", titles=("A", "B")) as stage:
            await two_running(stage)
            stage.window.quit()
            await stage.window.wait_closed()
        async with open_stage(tmp_path / "delete", titles=("A", "B")) as stage:
            await two_running(stage)
            stage.services.support.wants_all_deleted = True
            stage.window.commands[CommandId.QUIT].trigger()
            await stage.window.wait_closed()

    play(story())


def test_parts_that_were_shown_are_shown_again(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            assert stage.window.findChild(Sidebar).isVisible()
            assert not stage.window.pool_panel.isVisible()
            stage.window.commands[CommandId.SIDEBAR].trigger()
            stage.window.commands[CommandId.POOL].trigger()
        async with open_stage(tmp_path) as stage:
            assert stage.window.pool_panel.isVisible()
            assert not stage.window.findChild(Sidebar).isVisible()
            assert stage.window.commands[CommandId.POOL].isChecked()
            stage.window.commands[CommandId.POOL].trigger()
        async with open_stage(tmp_path) as stage:
            assert not stage.window.pool_panel.isVisible()

    play(story())


def test_a_window_with_a_question_open_ends_with_it(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            await two_running(stage)
            stage.window.commands[CommandId.QUIT].trigger()
            stage.window.quit()
            await stage.window.wait_closed()
            await until(lambda: not isinstance(QApplication.activeModalWidget(), QMessageBox))

    play(story())


def test_what_runs_is_what_the_next_program_is_told(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            chat = stage.chats.chats[1]
            await stage.server.start()
            await stage.window.panes.split(chat)
            stage.window.commands[CommandId.OWN_WINDOW].trigger()
            await until(lambda: chat in stage.window.chat_commands.windows.windows)
            stage.window.quit_flow.restart()
            await stage.window.wait_closed()
            assert stage.services.restarts.what_ran == WhatRan(
                model=str(TINY_MODEL.path), has_server=True, chat_ids=(chat.chat_id,)
            )

    play(story())


@pytest.mark.parametrize("is_resting", [False, True])
def test_what_was_switched_off_stays_off_unless_it_only_rests(
    play: Play, tmp_path: Path, *, is_resting: bool
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.services.settings.change("engine.model", "tiny")
            stage.services.settings.change("server.is_enabled", True)
            stage.models.is_resting = is_resting
            stage.models.say(EngineState.NO_MODEL)
            stage.window.quit_flow.restart()
            await stage.window.wait_closed()
            assert stage.services.restarts.what_ran == WhatRan(model="tiny" if is_resting else "")

    play(story())
