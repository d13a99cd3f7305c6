"""Commands are data: each has its place, its keys are its own, and none destroys anything with a bare key."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMainWindow, QWidget

from studio.models.window_settings import Language
from studio.views.actions import COMMANDS, CommandId, Menu, WindowState
from studio.views.menu_actions import Actions
from studio.views.translation import read_catalogue


def test_every_command_has_one_row() -> None:
    assert sorted(command.id.value for command in COMMANDS) == sorted(
        id_.value for id_ in CommandId
    )


def test_no_two_commands_share_keys() -> None:
    keys = [QKeySequence(key).toString() for command in COMMANDS for key in command.keys]
    assert all(keys)
    assert len(keys) == len(set(keys))


def test_mnemonics_are_unique_in_each_menu() -> None:
    for menu in Menu:
        letters = [
            command.text[command.text.index("&") + 1].lower()
            for command in COMMANDS
            if command.menu is menu
        ]
        assert len(letters) == len(set(letters)), menu


def test_a_bare_key_never_deletes() -> None:
    (delete,) = [command for command in COMMANDS if command.id is CommandId.DELETE_CHAT]
    assert delete.keys == ()


def test_commands_follow_the_state_of_the_window(page: QWidget) -> None:
    window = QMainWindow(page)
    done: list[CommandId] = []
    handlers = {id_: (lambda id_=id_: done.append(id_)) for id_ in CommandId}
    actions = Actions(window.menuBar(), handlers, window)
    actions.update(WindowState())
    assert not actions[CommandId.STOP].isEnabled()
    assert not actions[CommandId.CLOSE_PANE].isEnabled()
    assert actions[CommandId.NEW_CHAT].isEnabled()
    actions.update(WindowState(has_chat=True, is_running=True, num_panes=2, has_sidebar=False))
    assert actions[CommandId.STOP].isEnabled()
    assert actions[CommandId.CLOSE_PANE].isEnabled()
    assert not actions[CommandId.SIDEBAR].isChecked()
    actions[CommandId.STOP].trigger()
    assert done == [CommandId.STOP]


def test_mnemonics_are_unique_in_each_menu_in_german_too() -> None:
    german = read_catalogue(Language.GERMAN)
    for menu in Menu:
        texts = [german[command.text] for command in COMMANDS if command.menu is menu]
        letters = [text[text.index("&") + 1].lower() for text in texts]
        assert len(letters) == len(set(letters)), texts
