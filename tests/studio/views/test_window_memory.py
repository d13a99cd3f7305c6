"""The window opens as it was closed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSize

from fakes.fake_window import open_stage, until
from studio.models.window_place import WindowPlace, read_place, write_place
from studio.services.settings_service import SettingsService
from studio.views.actions import CommandId

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
            stage.window.memory.recall()
            stage.window.commands[CommandId.SIDEBAR].trigger()
            stage.window.resize(SIZE)
            await stage.window.panes.show_chat(stage.chats.chats[2])
            await stage.window.panes.split(stage.chats.chats[1])
        async with open_stage(tmp_path) as stage:
            window = stage.window
            window.memory.recall()
            await until(lambda: len(window.panes.panes) == 2)
            await until(lambda: [pane.chat.title for pane in window.panes.panes] == ["A", "B"])
            assert window.size() == SIZE

    play(story())


def test_a_chat_that_is_gone_and_a_temporary_one_are_left_out(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            stage.window.commands[CommandId.NEW_TEMPORARY].trigger()
            await until(lambda: stage.window.panes.active.chat.is_temporary)
        async with open_stage(tmp_path) as stage:
            place = read_place(stage.services.settings.settings.window.place)
            assert place is not None
            assert place.chat_ids == ()
            gone = WindowPlace(geometry=place.geometry, chat_ids=(999,))
            stage.services.settings.change("window.place", write_place(gone))
            stage.window.memory.recall()
            assert stage.window.panes.active.chat.title == "B"

    play(story())


def test_a_killed_program_has_left_the_chats_that_were_open(play: Play, tmp_path: Path) -> None:
    """While the window stands, its file says what a start after `kill -9` would show."""

    def left() -> tuple[list[int], bool]:
        window = SettingsService(
            tmp_path / "settings.json", environment={}, flags={}
        ).settings.window
        place = read_place(window.place)
        return list(place.chat_ids if place is not None else ()), window.has_sidebar

    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            panes, chats = stage.window.panes, stage.chats.chats
            await panes.show_chat(chats[1])
            await until(lambda: left() == ([chats[1].chat_id], True))
            await panes.show_chat(chats[2])
            await panes.split(chats[0])
            await until(lambda: left() == ([chats[2].chat_id, chats[0].chat_id], True))
            stage.window.commands[CommandId.SIDEBAR].trigger()
            await until(lambda: not left()[1])

    play(story())


def test_what_cannot_be_kept_is_told_once_and_when_closing_to_nobody(
    play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            (
                tmp_path / "settings.json"
            ).mkdir()  # whoever runs this: nothing can be put in its place
            notices, chats = stage.services.notices, stage.chats.chats
            await stage.window.panes.show_chat(chats[1])
            await until(lambda: notices.notices.notices)
            assert notices.notices.notices[0].code == "setting_invalid"
            notices.resolve("setting_invalid")
            caplog.clear()
            await stage.window.panes.show_chat(chats[2])
            await until(lambda: "is not remembered" in caplog.text)
            caplog.clear()
            stage.window.close()
            assert "is not remembered" in caplog.text
            assert not notices.notices.notices

    play(story())
