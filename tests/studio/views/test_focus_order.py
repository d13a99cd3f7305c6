"""Where the focus goes when what has it goes away: never to a button, which the next Space would press."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPushButton, QVBoxLayout, QWidget

from engine.runs import RunState
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from studio.views.actions import CommandId
from studio.views.dialogs.dialog import Dialog

Play = Callable[[Coroutine[Any, Any, None]], None]
WAYS: dict[str, Callable[[QWidget], object]] = {
    "hidden": lambda button: button.hide(),
    "off": lambda button: button.setEnabled(False),
    "parent hidden": lambda button: button.parentWidget().hide(),
}


@pytest.fixture
def dialog(qtbot: Any) -> Dialog:
    """A first button, a field, a row with a button, another button."""
    made = Dialog()
    qtbot.addWidget(made)
    layout = QVBoxLayout(made)
    row = QWidget(made)
    QPushButton("Go", row)
    for one in (QPushButton("Restore", made), QLineEdit(made), row, QPushButton("Delete", made)):
        layout.addWidget(one)
    made.show()
    return made


def button(window: QWidget, text: str) -> QPushButton:
    return next(one for one in window.findChildren(QPushButton) if one.text() == text)


@pytest.mark.parametrize("way", WAYS)
def test_a_button_that_goes_leaves_the_focus_to_what_cannot_be_pressed(
    dialog: Dialog, way: str
) -> None:
    going = button(dialog, "Go")
    going.setFocus()
    assert dialog.focusWidget() is going
    WAYS[way](going)
    assert isinstance(dialog.focusWidget(), QLineEdit)


def test_where_there_are_only_buttons_none_gets_the_focus(qtbot: Any) -> None:
    dialog = Dialog()
    qtbot.addWidget(dialog)
    going, stays = QPushButton("Go", dialog), QPushButton("Delete", dialog)
    dialog.show()
    going.setFocus()
    going.hide()
    assert dialog.focusWidget() is not stays


def test_in_the_window_the_focus_comes_to_what_is_typed(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            composer = stage.window.panes.active.composer
            for way in WAYS.values():
                await lose(stage, way)
                assert stage.window.focusWidget() is composer.focusProxy()

    async def lose(stage: Stage, way: Callable[[QWidget], object]) -> None:
        row = QWidget(stage.window.centralWidget())
        going = QPushButton("Go", row)
        row.show()
        going.setFocus()
        await until(lambda: stage.window.focusWidget() is going)
        way(going)
        row.deleteLater()

    play(story())


def test_a_click_on_what_acts_on_a_chat_leaves_the_cursor_where_it_is(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            chat = stage.chats.chats[0]
            await stage.window.panes.show_chat(chat)
            request_id = await stage.ask(chat, "Hello?")
            stage.engine.start(request_id)
            stage.engine.publish(make_run(request_id, RunState.PARKED, wait=make_wait()))
            stage.window.commands[CommandId.POOL].trigger()
            pane, runs = stage.window.panes.active, stage.window.pool_panel.runs
            await until(lambda: pane.strip.first_button.isVisible() and runs.rows)
            pane.composer.setFocus()
            (row,) = runs.rows.values()
            for target in (pane.strip.first_button, row.first_button, row.pin_button):
                QTest.mouseClick(target, Qt.MouseButton.LeftButton)
                assert stage.window.focusWidget() is pane.composer.focusProxy(), target

    play(story())


def test_every_window_beside_the_main_one_keeps_to_this() -> None:
    """They are all Dialogs."""
    source = Path(__file__).parents[3] / "studio" / "views"
    plain = [path for path in source.rglob("*.py") if "(QDialog)" in path.read_text("utf-8")]
    assert [path.name for path in plain] == ["dialog.py"]
