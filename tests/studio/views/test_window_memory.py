"""The window opens as it was closed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSize

from fakes.fake_window import open_stage, until
from studio.models.window_place import WindowPlace, read_place, write_place
from studio.views.actions import CommandId
from studio.views.window_memory import WindowMemory

Play = Callable[[Coroutine[Any, Any, None]], None]
SIZE = QSize(720, 610)
"""Two panes have room in it, and it has on the screen of tests."""


@pytest.mark.parametrize("text", ["", "{", "[]", '{"geometry": "?"}', '{"geometry": ""}', "7"])
def test_what_is_no_place_is_none(text: str) -> None:
    assert read_place(text) is None


def test_a_place_is_read_as_it_was_written() -> None:
    place = WindowPlace(geometry=b"\x00\xff", chat_ids=(3, 1))
    assert read_place(write_place(place)) == place


def test_the_size_and_the_chats_side_by_side_come_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            WindowMemory(stage.window).recall()
            stage.window.commands[CommandId.SIDEBAR].trigger()
            stage.window.resize(SIZE)
            await stage.window.panes.show_chat(stage.chats.chats[2])
            await stage.window.panes.split(stage.chats.chats[1])
        async with open_stage(tmp_path) as stage:
            window = stage.window
            WindowMemory(window).recall()
            await until(lambda: len(window.panes.panes) == 2)
            await until(lambda: [pane.chat.title for pane in window.panes.panes] == ["A", "B"])
            assert window.size() == SIZE

    play(story())


def test_a_chat_that_is_gone_and_a_temporary_one_are_left_out(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            WindowMemory(stage.window)
            stage.window.commands[CommandId.NEW_TEMPORARY].trigger()
            await until(lambda: stage.window.panes.active.chat.is_temporary)
        async with open_stage(tmp_path) as stage:
            place = read_place(stage.services.settings.settings.window.place)
            assert place is not None
            assert place.chat_ids == ()
            gone = WindowPlace(geometry=place.geometry, chat_ids=(999,))
            stage.services.settings.change("window.place", write_place(gone))
            WindowMemory(stage.window).recall()
            assert stage.window.panes.active.chat.title == "B"

    play(story())
