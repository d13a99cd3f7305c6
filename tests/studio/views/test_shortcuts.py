"""Every command's keys can be changed, switched off and set back; none destroys by a bare key."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from fakes.fake_window import Stage, open_stage, until
from studio.models.window_settings import read_keys, write_keys
from studio.services.settings_service import SettingsService
from studio.views.actions import COMMANDS, CommandId
from studio.views.settings.shortcut_page import ShortcutPage, ShortcutRow
from studio.views.shortcuts import Shortcuts, refusal
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def shortcuts(tmp_path: Path) -> Shortcuts:
    return Shortcuts(SettingsService(tmp_path / "settings.json", environment={}, flags={}))


def test_no_two_commands_share_keys_from_the_start() -> None:
    keys = [QKeySequence(one).toString() for command in COMMANDS for one in command.keys]
    assert len(set(keys)) == len(keys)


def test_no_command_is_done_by_a_bare_key(qapp: QApplication) -> None:
    refused = {one: refusal(one, command) for command in COMMANDS for one in command.keys}
    assert {keys: why for keys, why in refused.items() if why} == {}


@pytest.mark.parametrize("keys", ["X", "Del", "Backspace", "Shift+D", "Space", "Ctrl+C", ""])
def test_keys_that_texts_need_are_refused(qapp: QApplication, keys: str) -> None:
    assert refusal(keys, COMMANDS[0])


@pytest.mark.parametrize("keys", ["F8", "Esc", "Ctrl+Alt+K", "Alt+1", "Ctrl+Shift+F5", "Meta+K"])
def test_other_keys_are_allowed(qapp: QApplication, keys: str) -> None:
    assert refusal(keys, COMMANDS[0]) == ""


def test_changes_are_kept_in_the_settings_and_set_back(
    shortcuts: Shortcuts, tmp_path: Path
) -> None:
    shortcuts.change(CommandId.NEW_CHAT, ("Ctrl+Alt+N",))
    shortcuts.change(CommandId.STOP, ())
    settings = SettingsService(tmp_path / "settings.json", environment={}, flags={})
    again = Shortcuts(settings)
    assert again.keys[CommandId.NEW_CHAT] == ("Ctrl+Alt+N",)
    assert again.keys[CommandId.STOP] == ()
    again.change(CommandId.NEW_CHAT, ("Ctrl+N", "Ctrl+Shift+O"))
    assert not again.is_changed(next(c for c in COMMANDS if c.id is CommandId.NEW_CHAT))
    settings.reset("window.keys")
    assert again.keys[CommandId.STOP] == ("Esc",)
    assert "keys" not in (tmp_path / "settings.json").read_text()


@pytest.mark.parametrize("text", ["", "no json", "[1]", '{"stop": 3, "quit": [1]}', "{"])
def test_a_broken_setting_changes_nothing(text: str) -> None:
    assert read_keys(text) == {}


def test_keys_of_commands_of_a_later_version_survive(shortcuts: Shortcuts, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    settings = SettingsService(path, environment={}, flags={})
    settings.change("window.keys", write_keys({"fly": ("Ctrl+Alt+F",)}))
    Shortcuts(settings).change(CommandId.STOP, ())
    assert read_keys(settings.settings.window.keys)["fly"] == ("Ctrl+Alt+F",)


async def open_page(stage: Stage) -> ShortcutPage:
    stage.window.settings_window.open(page="Shortcuts")
    dialog = stage.window.settings_window.dialog
    assert dialog is not None
    page = dialog.findChild(ShortcutPage)
    await until(page.isVisible)
    return page


def press_in(row: ShortcutRow, keys: str) -> None:
    """As if the keys had been pressed in the row's field."""
    row.field.setKeySequence(QKeySequence(keys))
    row.field.editingFinished.emit()


def test_the_page_changes_the_windows_keys_at_once(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            page, pool = await open_page(stage), stage.window.commands[CommandId.POOL]
            row = page.rows[CommandId.POOL]
            assert not row.reset.isVisible()
            press_in(row, "Ctrl+Alt+U")
            assert [one.toString() for one in pool.shortcuts()] == ["Ctrl+Alt+U"]
            row.field.clear()
            assert pool.shortcuts() == []
            row.reset.click()
            assert [one.toString() for one in pool.shortcuts()] == ["Ctrl+Shift+U"]
            assert not row.reset.isVisible()

    play(story())


def test_keys_of_another_command_are_refused_by_its_name(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            page = await open_page(stage)
            row = page.rows[CommandId.POOL]
            press_in(row, "Ctrl+N")
            assert "New chat" in row.note.text()
            assert row.field.keySequence() == QKeySequence("Ctrl+Shift+U")
            press_in(row, "D")
            assert "alone" in row.note.text()
            assert not stage.services.settings.settings.window.keys

    play(story())


def test_setting_back_does_not_take_keys_that_were_given_away(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            page = await open_page(stage)
            press_in(page.rows[CommandId.POOL], "Ctrl+Alt+U")
            press_in(page.rows[CommandId.SPLIT], "Ctrl+Shift+U")
            page.rows[CommandId.POOL].reset.click()
            assert "Split" in page.rows[CommandId.POOL].note.text()
            dialog = stage.window.settings_window.dialog
            assert dialog is not None
            dialog.restore.click()
            box = dialog.restore.question
            assert box is not None
            next(one for one in box.buttons() if one.text() == tr("Restore")).click()
            assert page.rows[CommandId.POOL].field.keySequence() == QKeySequence("Ctrl+Shift+U")

    play(story())


def test_real_keys_are_recorded_and_tab_leaves_the_field(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            page = await open_page(stage)
            row = page.rows[CommandId.DELETE_CHAT]
            page.window().activateWindow()
            row.field.setFocus()
            await until(row.field.hasFocus)
            target = QApplication.focusWidget()
            QTest.keyClick(
                target,
                Qt.Key.Key_D,
                Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier,
            )
            QTest.keyClick(target, Qt.Key.Key_Tab)
            await until(lambda: stage.window.commands[CommandId.DELETE_CHAT].shortcuts())
            assert QApplication.focusWidget() is not target

    play(story())
