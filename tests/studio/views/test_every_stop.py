"""Whatever is open: Tab comes to everything and around, what it comes to shows it, and nothing is without a name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QWidget

from engine.api import EngineState
from engine.runs import RunState
from fakes.fake_window import ENTRY, Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.spoken import nameless
from fakes.tab_walk import faults_of
from studio.models.server_keys import KeyPlan
from studio.views.actions import CommandId
from studio.views.chat.code_block import CodeBlock

Play = Callable[[Coroutine[Any, Any, None]], None]
REPLY = "A [link](https://example.org) and [another](https://example.com).\n\n```py\nx = 1\n```\n"


async def be_sound(window: QWidget) -> None:
    """Of each of its pages, where it has several."""
    pages = getattr(window, "pages", None)
    for place in range(pages.count() if pages is not None else 1):
        if pages is not None:
            pages.setCurrentRow(place)
            pages.setFocus()
        assert nameless(window) == [], place
        assert await faults_of(window) == [], place


async def answered(stage: Stage) -> None:
    """A reply with every kind of piece."""
    chat = stage.chats.chats[0]
    request_id = await stage.ask(chat, "Hello?")
    stage.engine.start(request_id)
    stage.engine.say(request_id, REPLY)
    stage.engine.finish(request_id)
    await until(lambda: chat.running_message is None)
    await stage.window.panes.show_chat(chat)
    await until(lambda: stage.window.panes.active.findChild(CodeBlock) is not None)


def shown_windows() -> set[QWidget]:
    return {one for one in QApplication.topLevelWidgets() if one.isVisible()}


async def opened_by(stage: Stage, command: CommandId) -> QWidget:
    """The window that a command opens."""
    before = shown_windows()
    stage.window.commands[command].trigger()
    await until(lambda: shown_windows() - before)
    return (shown_windows() - before).pop()


def test_the_window_with_a_reply_and_a_find_bar(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            await answered(stage)
            await be_sound(stage.window)
            stage.window.commands[CommandId.FIND].trigger()
            await be_sound(stage.window)

    play(story())


def test_the_window_with_its_panels_and_a_parked_reply(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            window, chats = stage.window, stage.chats.chats
            parked = await stage.ask(chats[0], "Hello?")
            stage.engine.publish(
                make_run(parked, RunState.PARKED, wait=make_wait()), make_run("chatcmpl-1")
            )
            await window.panes.show_chat(chats[0])
            window.commands[CommandId.POOL].trigger()
            await until(lambda: len(window.pool_panel.rows) == 2)
            await be_sound(window)
            window.commands[CommandId.INSPECTOR].trigger()
            await be_sound(window)
            window.commands[CommandId.ARCHIVED].trigger()  # a list with nothing in it
            await be_sound(window)

    play(story())


def test_the_first_launch(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            await be_sound(stage.window)

    play(story())


@pytest.mark.parametrize(
    "command",
    [
        CommandId.SETTINGS,
        CommandId.MODELS,
        CommandId.SERVER,
        CommandId.SHORTCUTS,
        CommandId.COMPARE,
        CommandId.LOG_BUNDLE,
        CommandId.ABOUT,
        CommandId.OWN_WINDOW,
    ],
)
def test_what_a_command_opens(play: Play, tmp_path: Path, command: CommandId) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            stage.models.entries = (ENTRY,)
            stage.models.library_changed.emit()
            for key in ("sources.hub", "sources.any_url"):
                stage.services.settings.change(key, True)
            stage.server.keys.create(KeyPlan(name="editor"))
            await answered(stage)
            window = await opened_by(stage, command)
            await be_sound(window)
            window.close()

    play(story())


def test_the_questions_before_a_load(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            await stage.ask(stage.chats.chats[0], "Hello?")
            await stage.window.reload_flow.load("another")
            question = stage.window.reload_flow.dialog
            assert question is not None
            await be_sound(question)
            question.close()

    play(story())
