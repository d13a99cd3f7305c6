"""The commands as Qt's actions, in the menu bar of a window: the main one, or a chat's own. GUI thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenuBar

from studio.views.actions import COMMANDS, CommandId, Menu, WindowState
from studio.views.words import tr


class Actions(QObject):
    """One QAction for each command that has a handler, in the menu bar. `update` turns them on and off."""

    def __init__(
        self, bar: QMenuBar, handlers: Mapping[CommandId, Callable[[], object]], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._actions: dict[CommandId, QAction] = {}
        self.commands = tuple(command for command in COMMANDS if command.id in handlers)
        menus = {menu: bar.addMenu(tr(menu.value)) for menu in Menu}
        for command in self.commands:
            action = QAction(tr(command.text), self)
            action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
            action.setCheckable(command.is_checked is not None)
            action.triggered.connect(lambda _=False, do=handlers[command.id]: do())
            if command.starts_group and menus[command.menu].actions():
                menus[command.menu].addSeparator()
            menus[command.menu].addAction(action)
            self._actions[command.id] = action
        for menu in menus.values():
            menu.menuAction().setVisible(bool(menu.actions()))
        self.set_keys({command.id: command.keys for command in self.commands})

    def __getitem__(self, command_id: CommandId) -> QAction:
        return self._actions[command_id]

    def set_keys(self, keys: Mapping[CommandId, tuple[str, ...]]) -> None:
        """Have each command done by these keys, the first ones shown in the menus; by none where it has none."""
        for command_id, action in self._actions.items():
            action.setShortcuts([QKeySequence(one) for one in keys.get(command_id, ())])

    def update(self, state: WindowState) -> None:
        """Turn each command on or off as its row says."""
        for command in self.commands:
            action = self._actions[command.id]
            action.setEnabled(command.is_enabled(state))
            if command.is_checked is not None:
                action.setChecked(command.is_checked(state))
