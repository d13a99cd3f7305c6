"""The command palette in the window: it finds commands, chats and settings, remembers, and stays out of the way."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from fakes.fake_window import open_stage, until
from studio.views.actions import CommandId
from studio.views.palette.entries import Entry, matching, with_newest
from studio.views.palette.palette import Palette

Play = Callable[[Coroutine[Any, Any, None]], None]


def entry(key: str, text: str, kind: str = "Chat") -> Entry:
    return Entry(key=key, text=text, kind=kind, do=lambda: None)


def texts(palette: Palette) -> list[str]:
    return [one.text for one in palette.shown]


def test_recent_ones_come_first_until_letters_say_otherwise() -> None:
    all_of_them = [entry("a", "Split"), entry("b", "Settings"), entry("c", "Side bar")]
    assert [one.key for one in matching(all_of_them, "", ("c", "gone", "b"))] == ["c", "b", "a"]
    assert [one.key for one in matching(all_of_them, "sett", ("c",))] == ["b"]


def test_the_kind_finds_an_entry_too() -> None:
    assert [one.key for one in matching([entry("a", "Seed", "Setting")], "setting seed", ())] == [
        "a"
    ]


def test_only_a_few_recent_ones_are_kept_each_once() -> None:
    recent: tuple[str, ...] = ()
    for number in [*range(20), 18]:
        recent = with_newest(recent, str(number))
    assert recent[:3] == ("18", "19", "17")
    assert len(recent) == len(set(recent)) == 8


def test_what_was_deleted_is_found_by_that_word(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            palette = stage.window.app.palette
            stage.window.commands[CommandId.PALETTE].trigger()
            await until(palette.field.hasFocus)
            QTest.keyClicks(palette.field, "deleted")
            assert texts(palette)[0] == "Archive and deleted"

    play(story())


def test_a_command_is_found_done_and_first_the_next_time(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            window, palette = stage.window, stage.window.app.palette
            window.activateWindow()
            field = QApplication.focusWidget()
            window.commands[CommandId.PALETTE].trigger()
            await until(palette.field.hasFocus)
            assert "All commands" not in texts(palette)
            QTest.keyClicks(palette.field, "pool")
            assert texts(palette)[0] == "Pool"
            QTest.keyClick(palette.field, Qt.Key.Key_Return)
            assert palette.isHidden()
            assert window.pool_panel.isVisible()
            assert QApplication.focusWidget() is field
            window.commands[CommandId.PALETTE].trigger()
            assert texts(palette)[0] == "Pool"
            assert stage.services.settings.settings.window.recent_commands == "command pool"

    play(story())


def test_a_chat_and_a_setting_are_found_too(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "B")) as stage:
            palette = stage.window.app.palette
            stage.window.commands[CommandId.PALETTE].trigger()
            palette.field.setText("lisb")
            QTest.keyClick(palette.field, Qt.Key.Key_Return)
            await until(lambda: stage.window.panes.active.chat.title == "Lisbon")
            stage.window.commands[CommandId.PALETTE].trigger()
            palette.field.setText("text size")
            QTest.keyClick(palette.field, Qt.Key.Key_Return)
            dialog = stage.window.settings_window.dialog
            assert dialog is not None
            row = dialog.rows["appearance.text_size"]
            await until(row.isVisible)

    play(story())


def test_what_cannot_be_done_now_is_not_offered(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.commands[CommandId.PALETTE].trigger()
            assert "Stop the reply" not in texts(stage.window.app.palette)
            stage.window.app.palette.leave()
            await stage.ask(stage.chats.chats[0], "Hello?")
            stage.window.commands[CommandId.PALETTE].trigger()
            assert "Stop the reply" in texts(stage.window.app.palette)

    play(story())


def test_escape_closes_the_palette_and_stops_no_reply(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.activateWindow()
            await stage.ask(stage.chats.chats[0], "Hello?")
            palette = stage.window.app.palette
            stage.window.commands[CommandId.PALETTE].trigger()
            await until(palette.field.hasFocus)
            QTest.keyClick(palette.field, Qt.Key.Key_Escape)
            assert palette.isHidden()
            assert not stage.engine.aborted

    play(story())


def test_the_arrows_go_round_and_nothing_found_says_so(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            palette = stage.window.app.palette
            stage.window.commands[CommandId.PALETTE].trigger()
            QTest.keyClick(palette.field, Qt.Key.Key_Up)
            assert palette.rows.currentIndex().row() == len(palette.shown) - 1
            QTest.keyClick(palette.field, Qt.Key.Key_Down)
            assert palette.rows.currentIndex().row() == 0
            palette.field.setText("qqqq")
            said = [label.text() for label in palette.findChildren(QLabel) if label.isVisible()]
            assert said == ["Nothing has these letters in its name"]
            QTest.keyClick(palette.field, Qt.Key.Key_Return)
            assert palette.isVisible()

    play(story())


def test_the_list_of_shortcuts_names_every_command_and_leads_to_their_page(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            dialog = stage.window.app.list_shortcuts()
            said = {label.text() for label in dialog.findChildren(QLabel)}
            assert {"New chat", "Ctrl+N or Ctrl+Shift+O", "Send the message"} <= said
            dialog.change_wanted.emit()
            dialog.close()
            settings = stage.window.settings_window.dialog
            assert settings is not None
            assert settings.pages.currentItem().text() == "Shortcuts"

    play(story())


def test_a_setting_is_found_by_what_it_is_told_to_be_after_those_with_such_a_name() -> None:
    named = entry("a", "Memory for parked chats", "Setting")
    told = Entry(
        key="b", text="Pool size", kind="Setting", told="what memory allows", do=lambda: None
    )
    assert [one.key for one in matching([told, named], "memory", ())] == ["a", "b"]
    assert matching([told], "memories", ()) == []
