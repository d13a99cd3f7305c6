"""The whole tree that a screen reader walks, with every panel and dialog open in turn: no control without a name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QApplication, QPushButton, QWidget

from engine.api import EngineState
from engine.runs import ParkUsage, RunState
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.spoken import nameless, objects_of
from studio.views.actions import CommandId

Play = Callable[[Coroutine[Any, Any, None]], None]


async def fill(stage: Stage) -> None:
    """Two panes, four requests in every state, the pool panel open."""
    chats = stage.chats.chats
    first, second = await stage.ask(chats[0], "Hello?"), await stage.ask(chats[1], "Hello?")
    stage.engine.start(first)
    stage.engine.say(
        first, "A [link](https://example.org).\n\n```py\nx = 1\n```\n\n|a|\n|-|\n|b|\n"
    )
    stage.engine.publish(
        make_run(first),
        make_run(second, RunState.PARKED, wait=make_wait(), expected_wait_s=(1.0, 9.0)),
        make_run("chatcmpl-1", RunState.QUEUED, wait=make_wait(ahead=(second,))),
        parks=ParkUsage(budget_bytes=1 << 30),
    )
    await stage.window.panes.split(chats[1])
    stage.window.commands[CommandId.POOL].trigger()
    await until(lambda: len(stage.window.pool_panel.rows) == 3)


def test_a_nameless_control_is_found(page: QWidget) -> None:
    QPushButton(page).show()
    assert nameless(page) == ["Button QPushButton "]


def test_the_window_at_work_has_no_nameless_control(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            await fill(stage)
            window = stage.window
            assert nameless(window) == []
            names = {one.text(QAccessible.Text.Name) for one in objects_of(window)}
            assert names >= {"Pool by chat", "Requests in flight", "Chats", "Stop: C"}
            await window.reload_flow.load("another")
            dialog = window.reload_flow.dialog
            assert dialog is not None
            assert nameless(dialog) == []
            dialog.close()

    play(story())


def test_the_first_launch_has_no_nameless_control(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            stage.window.commands[CommandId.POOL].trigger()
            assert nameless(stage.window) == []

    play(story())


def test_whatever_a_command_opens_has_no_nameless_control(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            for command in (
                CommandId.SETTINGS,
                CommandId.MODELS,
                CommandId.SERVER,
                CommandId.PALETTE,
                CommandId.SHORTCUTS,
            ):
                stage.window.commands[command].trigger()
                for widget in QApplication.topLevelWidgets():
                    if widget.isVisible():
                        assert nameless(widget) == [], command
                for widget in QApplication.topLevelWidgets():
                    if widget.isVisible() and widget is not stage.window:
                        widget.close()

    play(story())
