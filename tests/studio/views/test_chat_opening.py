"""A chat that is gone to has the keyboard at once, however long its messages take to be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from fakes.fake_window import Stage, open_stage, until
from studio.models.chat import Conversation

Play = Callable[[Coroutine[Any, Any, None]], None]


def keep_unread(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let no messages be read before the event is set."""
    may_read, open_chat = asyncio.Event(), stage.chats.open_chat

    async def open_later(chat_id: int) -> Conversation:
        await may_read.wait()
        return await open_chat(chat_id)

    monkeypatch.setattr(stage.chats, "open_chat", open_later)
    return may_read


@pytest.mark.parametrize("how", ["in the pane", "beside it"])
def test_what_is_typed_while_a_chat_is_being_read_is_its_draft(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Porto")) as stage:
            panes, (porto, lisbon) = stage.window.panes, stage.chats.chats
            stage.chats.set_draft(lisbon, "The ")
            may_read = keep_unread(stage, monkeypatch)
            if how == "in the pane":
                stage.window.context.tasks.start(panes.show_chat(lisbon))
            else:
                stage.window.context.tasks.start(panes.split(lisbon))
            await until(lambda: panes.active.chat is lisbon)
            focused = QApplication.focusWidget()
            assert focused is not None
            QTest.keyClicks(focused, "tram")
            assert (lisbon.draft, porto.draft) == ("The tram", "")
            assert panes.active.transcript is None, "nothing of it has been read"
            QTest.keyClick(focused, Qt.Key.Key_Return)
            may_read.set()
            await until(lambda: len(lisbon.messages) == 2)
            assert lisbon.messages[0].text == "The tram"
            await until(lambda: panes.active.transcript is not None)
            assert (panes.active.composer.text(), lisbon.draft) == ("", "")

    play(story())


def test_a_chat_that_has_been_read_takes_the_keyboard_from_nobody(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Porto")) as stage:
            panes, (_, lisbon) = stage.window.panes, stage.chats.chats
            await stage.ask(lisbon, "Where does the tram go?")
            may_read = keep_unread(stage, monkeypatch)
            stage.window.context.tasks.start(panes.show_chat(lisbon))
            await until(lambda: panes.active.chat is lisbon)
            stage.window._sidebar.focus_search()
            search = QApplication.focusWidget()
            may_read.set()
            await until(lambda: panes.active.transcript is not None)
            assert QApplication.focusWidget() is search

    play(story())
