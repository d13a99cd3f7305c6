"""What the program itself does for the user, beside chats and models: the palette, the shortcuts, the settings' pages.

GUI thread. The window makes one of these and gives its commands to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from PySide6.QtWidgets import QWidget

from studio.models.chat import Conversation
from studio.models.errand import Errand
from studio.models.errors import SettingError
from studio.models.notices import NoticeAction
from studio.models.setting_field import SettingValue
from studio.models.settings import Settings, Theme, setting_field
from studio.views.actions import CommandId
from studio.views.context import Context
from studio.views.exchange_actions import ExchangeActions
from studio.views.key_hints import tell_keys
from studio.views.menu_actions import Actions
from studio.views.palette.entries import (
    MOST_RECENT,
    Entry,
    chat_entries,
    command_entries,
    setting_entries,
    with_newest,
)
from studio.views.palette.palette import Palette
from studio.views.palette.shortcut_list import ShortcutList
from studio.views.settings.dialog import OwnPage
from studio.views.settings.settings_window import SettingsWindow
from studio.views.settings.shortcut_page import ShortcutPage
from studio.views.shortcuts import Shortcuts
from studio.views.support_actions import SupportActions
from studio.views.tool_alerts import ToolAlerts
from studio.views.tools.servers_page import ServersPage
from studio.views.tray import Tray

_RECENT = "window.recent_commands"
_TEXT_SIZE = "appearance.text_size"


class Shower(Protocol):
    """Whoever brings a chat into the active pane."""

    def show(self, chat: Conversation) -> object:
        """Show it."""

    def show_new_with(self, draft: str) -> object:
        """Show a new one with this in its field."""


class AppCommands:
    """`handlers` are its commands; `attach` gives it the actions once they are made."""

    def __init__(
        self,
        context: Context,
        settings_window: SettingsWindow,
        chats: Shower,
        window: QWidget,
        *,
        meant_chats: Callable[[], list[Conversation]],
        attach: Callable[[Sequence[Path]], object],
    ) -> None:
        self._context = context
        self._settings = context.services.settings
        self._settings_window = settings_window
        self._chats = chats
        self._window = window
        self._meant_chats = meant_chats
        self._attach = attach
        self._actions: Actions | None = None
        self._shown_keys = ""
        self.shortcuts = Shortcuts(self._settings)
        self.palette = Palette(context.theme, window)
        self.exchange = ExchangeActions(context, window)
        self.support = SupportActions(
            context, window, quit_program=lambda: self._do(CommandId.QUIT)
        )
        self.palette.chosen.connect(self._on_chosen)
        services = context.services
        self.tray = Tray(
            services.settings,
            services.runs,
            services.notices,
            window,
            show=self.come_to_front,
            quit_program=lambda: self._do(CommandId.QUIT),
        )
        settings_window.own_pages = (
            *settings_window.own_pages,
            OwnPage("Shortcuts", lambda parent: ShortcutPage(self.shortcuts, parent)),
            OwnPage("Privacy", self.support.make_page),
        )
        self.alerts = ToolAlerts(services.chats, self.tray, window)
        if (desk := services.chats.desk) is not None:
            settings_window.own_pages = (
                OwnPage("Tool servers", lambda parent: ServersPage(context, desk.service, parent)),
                *settings_window.own_pages,
            )
        self._disconnect = self._settings.changed.connect(self._on_settings_changed)

    def handlers(self) -> dict[CommandId, Callable[[], object]]:
        """What its commands do."""
        return {
            CommandId.PALETTE: self.open_palette,
            CommandId.SHORTCUTS: self.list_shortcuts,
            CommandId.LOG_BUNDLE: self.support.create_bundle,
            CommandId.ABOUT: self.support.show_about,
            CommandId.PRIVACY: lambda: self._settings_window.open(page="Privacy"),
            CommandId.EXPORT_CHAT: self._export_chat,
            CommandId.EXPORT_ALL: self.exchange.export_all,
            CommandId.IMPORT: self.exchange.import_chats,
            CommandId.ZOOM_IN: lambda: self._zoom(1),
            CommandId.ZOOM_OUT: lambda: self._zoom(-1),
            CommandId.ZOOM_USUAL: lambda: self._change(
                _TEXT_SIZE, setting_field(_TEXT_SIZE).default
            ),
            CommandId.THEME_SYSTEM: lambda: self._choose_theme(Theme.SYSTEM),
            CommandId.THEME_LIGHT: lambda: self._choose_theme(Theme.LIGHT),
            CommandId.THEME_DARK: lambda: self._choose_theme(Theme.DARK),
        }

    def notice_ways(self) -> dict[NoticeAction, Callable[[], object]]:
        """What the buttons of notices do that are about the program itself."""
        return {
            NoticeAction.LOG_BUNDLE: self.support.create_bundle,
            NoticeAction.OPEN_SETTINGS: self._settings_window.open,
            NoticeAction.STOP_IMPORT: self.exchange.stop_import,
            NoticeAction.OPEN_TOOL_SERVERS: self.open_tool_servers,
        }

    def open_tool_servers(self) -> None:
        """Show the page on which servers of tools are declared."""
        self._settings_window.open(page="Tool servers")

    def attach(self, actions: Actions) -> None:
        """Know the window's commands, and give them their keys."""
        self._actions = actions
        self._tell_keys(actions)

    def close(self) -> None:
        """Follow the services no longer."""
        self.alerts.close()
        self.tray.close()
        self._disconnect()

    def open_palette(self) -> None:
        """Offer everything there is to do."""
        assert self._actions is not None
        entries = [
            *command_entries(self._actions, self.shortcuts),
            *chat_entries(self._context.services.chats.chats, self._chats.show),
            *setting_entries(lambda key: self._settings_window.open(setting=key)),
        ]
        self.palette.open_with(entries, self._recent())

    def list_shortcuts(self) -> ShortcutList:
        """Show which keys do what."""
        dialog = ShortcutList(self.shortcuts, self._window)
        dialog.change_wanted.connect(lambda: self._settings_window.open(page="Shortcuts"))
        dialog.show()
        return dialog

    def come_to_front(self) -> None:
        """Show the window, wherever it was."""
        if self._window.isMinimized():
            self._window.showNormal()
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()

    def _open(self, path: Path) -> None:
        if path.suffix.lower() in (".json", ".zip"):
            self.exchange.import_file(path)
        elif path.is_dir() or path.suffix.lower() in (".gguf", ".safetensors"):
            self._context.model_actions.use(path)
        else:
            self._attach([path])

    def _export_chat(self) -> None:
        if chats := self._meant_chats():
            self.exchange.export_chats(chats)

    def _do(self, command: CommandId) -> None:
        assert self._actions is not None
        self._actions[command].trigger()

    def _choose_theme(self, choice: Theme) -> None:
        self._change("appearance.theme", choice)

    def _zoom(self, step_px: int) -> None:
        """Larger or smaller text, within what the setting allows."""
        info, size = setting_field(_TEXT_SIZE).info, self._settings.settings.appearance.text_size
        if info.low is not None and info.high is not None:
            self._change(_TEXT_SIZE, min(max(size + step_px, info.low), info.high))

    def _change(self, key: str, value: SettingValue) -> None:
        try:
            self._settings.change(key, value)
        except SettingError as error:
            self._context.services.notices.report(error)

    def receive(self, errand: Errand) -> None:
        """Come to the front and do what another start of Layby was asked for."""
        self.come_to_front()
        if errand.text:
            self._chats.show_new_with(errand.text)
        for path in errand.files:
            self._open(path)

    def _recent(self) -> tuple[str, ...]:
        text = self._settings.settings.window.recent_commands
        return tuple(filter(None, text.split("|")))[:MOST_RECENT]

    def _on_chosen(self, entry: Entry) -> None:
        try:
            self._settings.change(_RECENT, "|".join(with_newest(self._recent(), entry.key)))
        except SettingError as error:
            self._context.services.notices.report(error)
        entry.do()

    def _on_settings_changed(self, settings: Settings) -> None:
        if self._actions is not None and self._shown_keys != settings.window.keys:
            self._shown_keys = settings.window.keys
            self._tell_keys(self._actions)

    def _tell_keys(self, actions: Actions) -> None:
        actions.set_keys(self.shortcuts.keys)
        tell_keys(self._window, self.shortcuts.keys)
