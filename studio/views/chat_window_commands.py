"""The commands of a chat's own window: those on its chat, and the program's, which the main window does. GUI thread.

What is about panes and the list of chats is the main window's alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from PySide6.QtWidgets import QInputDialog

from studio.models.chat import Conversation
from studio.models.notices import Notice
from studio.models.settings import Settings
from studio.services.run_service import Steer
from studio.views.actions import CommandId
from studio.views.chat.foot_view import MessageAction
from studio.views.chat_windows import ChatWindow
from studio.views.context import Context
from studio.views.exchange_actions import ExchangeActions
from studio.views.key_hints import tell_keys
from studio.views.menu_actions import Actions
from studio.views.palette.entries import chat_entries, command_entries, setting_entries
from studio.views.palette.palette import Palette
from studio.views.shortcuts import Shortcuts
from studio.views.sidebar.row_actions import RowActions
from studio.views.status_words import title_words
from studio.views.words import tr

ONLY_IN_MAIN = frozenset(
    {
        CommandId.NEW_FOLDER,
        CommandId.ARCHIVED,
        CommandId.SIDEBAR,
        CommandId.SPLIT,
        CommandId.CLOSE_PANE,
        CommandId.NEXT_PANE,
        CommandId.NEXT_CHAT,
        CommandId.PREVIOUS_CHAT,
    }
)
"""About panes and the list of chats."""
_SEEN_IN_MAIN = frozenset(
    {
        CommandId.NEW_CHAT,
        CommandId.NEW_TEMPORARY,
        CommandId.SEARCH,
        CommandId.POOL,
        CommandId.CHOOSE_MODEL,
    }
)
"""What they show is in the main window, which comes to the front."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What a chat's own window has from the main one."""

    commands: Actions
    shortcuts: Shortcuts
    rows: RowActions
    come_to_front: Callable[[], object]
    show: Callable[[Conversation], object]
    """Bring a chat to the front, wherever it is."""
    open_setting: Callable[[str], object]
    compare: Callable[[Conversation], object]
    do_notice: Callable[[Notice], object]
    open_tool_servers: Callable[[], object]


class ChatWindowCommands:
    """One for each such window; it ends with it."""

    def __init__(self, window: ChatWindow, context: Context, home: Home) -> None:
        self._window = window
        self._pane = window.pane
        self._context = context
        self._home = home
        self.palette = Palette(context.theme, window)
        self.palette.chosen.connect(lambda entry: entry.do())
        self.exchange = ExchangeActions(context, window)
        own = self._own()
        self._forwarded = frozenset(
            command.id
            for command in home.commands.commands
            if command.id not in own and command.id not in ONLY_IN_MAIN
        )
        others = {command_id: self._forward(command_id) for command_id in self._forwarded}
        self.commands = Actions(window.menuBar(), own | others, window)
        window.notice_bar.action_wanted.connect(home.do_notice)
        window.inspector.close_wanted.connect(self._toggle_inspector)
        window.inspector.tool_servers_wanted.connect(lambda: home.open_tool_servers())
        window.pane.sending.tools_wanted.connect(self._choose_tools)
        services = context.services
        self._disconnects = (
            services.chats.chat_changed.connect(lambda _chat: self.update()),
            services.chats.book.undo_offered.connect(lambda _undo: self.update()),
            services.models.changed.connect(self.update),
            services.settings.changed.connect(self._on_settings),
        )
        context.watch.ticked.connect(self.update)
        window.shown.connect(self.update)
        window.closing.connect(self._close)
        self._tell_keys()
        self.update()

    def update(self) -> None:
        """Turn each command on or off."""
        state = replace(
            self._pane.state(),
            is_own_window=True,
            has_inspector=not self._window.inspector.isHidden(),
            theme=self._context.services.settings.settings.appearance.theme,
        )
        self.commands.update(state)
        for command_id in self._forwarded:
            theirs, ours = self._home.commands[command_id], self.commands[command_id]
            ours.setEnabled(theirs.isEnabled())
            ours.setChecked(theirs.isChecked())

    def open_palette(self) -> None:
        """Offer everything that can be done here."""
        entries = [
            *command_entries(self.commands, self._home.shortcuts),
            *chat_entries(self._context.services.chats.chats, self._home.show),
            *setting_entries(self._home.open_setting),
        ]
        self.palette.open_with(entries, ())

    def ask_for_title(self) -> QInputDialog:
        """Let the user write another title."""
        chat, dialog = self._window.chat, QInputDialog(self._window)
        dialog.setWindowTitle(tr("Rename chat"))
        dialog.setLabelText(tr("Title"))
        dialog.setTextValue(title_words(chat))
        dialog.textValueSelected.connect(lambda title: self._home.rows.set_name(chat, title))
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
        return dialog

    def _own(self) -> dict[CommandId, Callable[[], object]]:
        chat, pane, rows = self._window.chat, self._pane, self._home.rows
        return {
            CommandId.ATTACH: pane.attaching.choose,
            CommandId.EXPORT_CHAT: lambda: self.exchange.export_chat(chat),
            CommandId.FIND: pane.open_find,
            CommandId.RENAME_CHAT: self.ask_for_title,
            CommandId.DUPLICATE_CHAT: lambda: rows.duplicate(chat),
            CommandId.PIN_CHAT: lambda: rows.pin([chat], is_pinned=not chat.is_pinned),
            CommandId.ARCHIVE_CHAT: lambda: rows.archive([chat], is_archived=not chat.is_archived),
            CommandId.DELETE_CHAT: lambda: rows.delete([chat]),
            CommandId.STOP: pane.stop,
            CommandId.ANSWER_AGAIN: lambda: pane.do(MessageAction.REGENERATE),
            CommandId.CONTINUE: lambda: pane.do(MessageAction.CONTINUE),
            CommandId.GO_FIRST: lambda: pane.steer(Steer.GO_FIRST),
            CommandId.PARK: lambda: pane.steer(Steer.PARK),
            CommandId.NEVER_PARK: pane.toggle_pin,
            CommandId.INSPECTOR: self._toggle_inspector,
            CommandId.COMPARE: self._compare,
            CommandId.OWN_WINDOW: self._go_back,
            CommandId.PALETTE: self.open_palette,
        }

    def _forward(self, command_id: CommandId) -> Callable[[], None]:
        def do() -> None:
            action = self._home.commands[command_id]
            if command_id in _SEEN_IN_MAIN:
                self._home.come_to_front()
            if command_id is not CommandId.POOL or not action.isChecked():
                action.trigger()
            self.update()

        return do

    def _toggle_inspector(self) -> None:
        inspector = self._window.inspector
        inspector.setVisible(inspector.isHidden())
        target = self._pane.composer if inspector.isHidden() else inspector.preset_bar.button
        target.setFocus()
        self.update()

    def _choose_tools(self) -> None:
        self._window.inspector.show()
        self._window.inspector.show_tools()
        self.update()

    def _compare(self) -> None:
        self._home.come_to_front()
        self._home.compare(self._window.chat)

    def _go_back(self) -> None:
        """The chat goes into the main window's active pane."""
        chat = self._window.chat
        self._window.close()
        self._home.come_to_front()
        self._home.show(chat)

    def _on_settings(self, _settings: Settings) -> None:
        self._tell_keys()
        self.update()

    def _tell_keys(self) -> None:
        keys = self._home.shortcuts.keys
        self.commands.set_keys(keys)
        tell_keys(self._window, keys)

    def _close(self) -> None:
        for disconnect in self._disconnects:
            disconnect()
        self._context.watch.ticked.disconnect(self.update)
