"""What the window's commands on chats do, and the bar that takes them back. GUI thread.

Each is for the chats selected in the list while that has the focus, else for the chat in the active pane.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget

from studio.models.chat import Conversation
from studio.views.actions import CommandId
from studio.views.chat_navigation import ChatNavigation
from studio.views.chat_windows import ChatWindows
from studio.views.compare.compare_commands import CompareCommands
from studio.views.context import Context
from studio.views.inspector.inspector import Inspector
from studio.views.panes import PaneArea
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.undo_bar import UndoBar
from studio.views.undo_key import UndoKey
from studio.views.window_size import reveal, toggle


class ChatCommands:
    """Built by the main window, which adds `handlers` to its own."""

    def __init__(
        self,
        context: Context,
        sidebar: Sidebar,
        panes: PaneArea,
        *,
        navigation: ChatNavigation,
        pool_panel: QWidget,
        window: QWidget,
    ) -> None:
        self._chats = context.services.chats
        self._sidebar = sidebar
        self._panes = panes
        self._navigation = navigation
        self._pool_panel = pool_panel
        self._do = do = sidebar.actions_of_rows
        self.undo_bar = UndoBar(context.services.chats.book, context.tasks, window)
        self._undo_key = UndoKey(cast(QApplication, QApplication.instance()), window)
        self.inspector = Inspector(context, window)
        self.compare = CompareCommands(context, panes, sidebar, window)
        sidebar.chosen.connect(navigation.show_found)
        sidebar.new_wanted.connect(navigation.show_new)
        sidebar.temporary_wanted.connect(navigation.show_temporary)
        self.undo_bar.returned.connect(navigation.show)
        do.split_wanted.connect(navigation.show_beside)
        do.window_wanted.connect(navigation.show_in_window)

    @property
    def windows(self) -> ChatWindows:
        """The chats in windows of their own."""
        return self._navigation.windows

    def close(self) -> None:
        """Listen no more."""
        self.windows.close()
        self._undo_key.close()
        self.undo_bar.close_bar()
        self.compare.bar.close_bar()
        self.inspector.close_inspector()
        self._sidebar.close_sidebar()

    def toggle_inspector(self) -> None:
        """Show the chat's settings, the keyboard in them, or hide them and go back to the chat."""
        is_hidden = self.inspector.isHidden()
        toggle(self.inspector, instead_of=(self._sidebar, self._pool_panel))
        target = self.inspector.preset_bar.button if is_hidden else self._panes.active.composer
        target.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def choose_tools(self) -> None:
        """Show the chat's settings, the keyboard where its tools are chosen."""
        reveal(self.inspector, instead_of=(self._sidebar, self._pool_panel))
        self.inspector.show_tools()

    def show_sidebar(self) -> None:
        """Have the list of chats on screen."""
        reveal(self._sidebar, instead_of=(self.inspector, self._pool_panel))

    def open_windows(self, chat_ids: Collection[int]) -> None:
        """Show these chats in windows of their own, those that are still there."""
        for chat in [one for one in self._chats.chats if one.chat_id in chat_ids]:
            self._navigation.show_in_window(chat)

    def handlers(self) -> dict[CommandId, Callable[[], object]]:
        """What each command does."""
        return {
            CommandId.NEW_CHAT: self._navigation.show_new,
            CommandId.NEW_TEMPORARY: self._navigation.show_temporary,
            CommandId.NEW_FOLDER: self._new_folder,
            CommandId.RENAME_CHAT: self._rename,
            CommandId.DUPLICATE_CHAT: self._duplicate,
            CommandId.PIN_CHAT: self._pin,
            CommandId.ARCHIVE_CHAT: self._archive,
            CommandId.DELETE_CHAT: lambda: self._do.delete(self.meant_chats()),
            CommandId.UNDO: self.undo_bar.take_back,
            CommandId.ARCHIVED: self._show_archive,
            CommandId.COMPARE: self.compare.ask,
            CommandId.OWN_WINDOW: self._show_in_window,
        }

    def meant_chats(self) -> list[Conversation]:
        """The chats selected in the list, or else the one in the active pane."""
        active = self._panes.active.chat
        return self._sidebar.selected_chats() or ([active] if active is not None else [])

    @property
    def has_messages(self) -> bool:
        """Whether there is anything in the chats that are meant."""
        return any(chat.last_status is not None for chat in self.meant_chats())

    def _new_folder(self) -> None:
        self.show_sidebar()
        self._do.new_folder()

    def _rename(self) -> None:
        self.show_sidebar()
        if not self._sidebar.edit_selected() and (chats := self.meant_chats()):
            self._sidebar.edit_title(chats[0])

    def _duplicate(self) -> None:
        if chats := self.meant_chats():
            self._do.duplicate(chats[0])

    def _pin(self) -> None:
        chats = self.meant_chats()
        self._do.pin(chats, is_pinned=not all(chat.is_pinned for chat in chats))

    def _archive(self) -> None:
        chats = self.meant_chats()
        self._do.archive(chats, is_archived=not all(chat.is_archived for chat in chats))

    def _show_in_window(self) -> None:
        for chat in self.meant_chats():
            self._navigation.show_in_window(chat)

    def _show_archive(self) -> None:
        self.show_sidebar()
        self._sidebar.toggle_archive()
