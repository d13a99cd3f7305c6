"""The tray keeps Layby running where the user and the desktop want that, says so once, and lets it end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QMenu, QMessageBox, QSystemTrayIcon

from engine.api import EngineSnapshot
from fakes.fake_window import open_stage, until
from studio.views.actions import CommandId
from studio.views.tray import state_words

Play = Callable[[Coroutine[Any, Any, None]], None]
pytestmark = pytest.mark.qt_log_ignore(
    r"does not support raise\(\)", "systemTrayWindowChanged", extend=True
)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A desktop with a tray; what it was asked to say."""
    words: list[str] = []
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    monkeypatch.setattr(
        QSystemTrayIcon, "showMessage", lambda _self, title, *_rest: words.append(title)
    )
    return words


def test_closing_hides_the_window_and_says_so_once(
    play: Play, tmp_path: Path, said: list[str]
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            window, settings = stage.window, stage.services.settings
            settings.change("window.has_tray_icon", True)
            request_id = await stage.ask(stage.chats.chats[0], "Hello?")
            window.close()
            assert not window.isVisible()
            assert request_id not in stage.engine.aborted
            assert said == ["Layby is still running"]
            icon = window.app.tray.icon
            assert icon is not None
            icon.activated.emit(QSystemTrayIcon.ActivationReason.Trigger)
            assert window.isVisible()
            window.close()
            assert said == ["Layby is still running"]
            window.commands[CommandId.QUIT].trigger()
            assert window.isVisible(), "a hidden window cannot ask"
            yes = QMessageBox.ButtonRole.DestructiveRole
            box = window.quit_flow.dialog
            next(one for one in box.buttons() if box.buttonRole(one) is yes).click()
            await window.wait_closed()
            assert window.app.tray.icon is None

    play(story())


def test_the_icons_menu_shows_and_quits(play: Play, tmp_path: Path, said: list[str]) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.services.settings.change("window.has_tray_icon", True)
            stage.window.close()
            icon = stage.window.app.tray.icon
            assert icon is not None
            menu: QMenu = icon.contextMenu()
            show, leave = menu.actions()
            show.trigger()
            await until(stage.window.isVisible)
            leave.trigger()
            await stage.window.wait_closed()

    play(story())


def test_without_the_setting_or_without_a_tray_closing_ends_it(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.services.settings.change("window.has_tray_icon", True)
            assert stage.window.app.tray.icon is None
            stage.window.close()
            await stage.window.wait_closed()

    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: False)
    play(story())


def test_switching_the_setting_off_takes_the_icon_away(
    play: Play, tmp_path: Path, said: list[str]
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            settings = stage.services.settings
            settings.change("window.has_tray_icon", True)
            assert stage.window.app.tray.icon is not None
            settings.change("window.has_tray_icon", False)
            assert stage.window.app.tray.icon is None

    play(story())


@pytest.mark.parametrize(
    ("snapshot", "words"),
    [
        (EngineSnapshot(), "Layby"),
        (EngineSnapshot(running=2, parked=1), "Layby: 2 running, 1 parked"),
        (EngineSnapshot(running=1, waiting=3), "Layby: 1 running, 3 queued"),
    ],
)
def test_the_tool_tip_counts(snapshot: EngineSnapshot, words: str) -> None:
    assert state_words(snapshot) == words
