"""The window: side bar, panes, bars and commands put together. GUI thread.

It asks the services and shows what they say. Commands are listed in `actions`; here is what each of them does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QCloseEvent, QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QMainWindow, QVBoxLayout, QWidget

from engine.api import EngineState
from studio.models.chat import NEW_CHAT_TITLE, Conversation
from studio.models.errors import StudioError
from studio.models.notices import NoticeAction
from studio.models.settings import AppearanceSettings, Settings
from studio.models.settings import Theme as ThemeChoice
from studio.views.actions import Actions, CommandId, WindowState
from studio.views.context import Context
from studio.views.dialogs.confirm import Question, confirm
from studio.views.focus_order import next_tab_stop
from studio.views.frame_ticker import FRAME_MS, FrameTicker
from studio.views.icons import app_icon
from studio.views.model_actions import ModelActions
from studio.views.monitor.status_line import POLL_MS, StatusLine
from studio.views.notices.notice_bar import NoticeBar
from studio.views.panes import PaneArea
from studio.views.ports import WindowServices
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.tasks import Tasks
from studio.views.theme import Theme
from studio.views.top_bar import TopBar
from studio.views.words import tr


class MainWindow(QMainWindow):
    """Build it on the running loop, show it, and `await wait_closed()`; then it may be deleted."""

    def __init__(self, services: WindowServices) -> None:
        super().__init__()
        self.setWindowTitle("Layby")
        self.setWindowIcon(app_icon())
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)  # the services end after it
        self.resize(1280, 800)
        self._services = services
        self._theme = theme = Theme(cast(QApplication, QApplication.instance()))
        tasks = Tasks(services.notices)
        self.context = Context(
            services=services,
            theme=theme,
            tasks=tasks,
            model_actions=ModelActions(services.models, tasks, self),
            frames=FrameTicker(self, FRAME_MS),
            figures=FrameTicker(self, POLL_MS),
        )
        self._closed = asyncio.Event()
        self._dressed_as: AppearanceSettings | None = None
        self._dress(services.settings.settings)
        self._sidebar = Sidebar(self.context, self)
        self._top = TopBar(self.context, self)
        self.notice_bar = NoticeBar(services.notices, theme, self)
        self.panes = PaneArea(self.context, self)
        self._status = StatusLine(self.context, self)
        self._lay_out()
        self.commands = Actions(self.menuBar(), self._handlers(), self)
        self._connect()
        self._update_commands()
        tasks.start(self._show_first_chat())

    async def wait_closed(self) -> None:
        """Return once the user has closed the window."""
        await self._closed.wait()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._closed.is_set():
            self._closed.set()
            for disconnect in self._disconnects:
                disconnect()
            self._sidebar.close_sidebar()
            self._top.selector.close_selector()
            self.notice_bar.close_bar()
            self._status.close_line()
            self.panes.close_area()
            self.context.tasks.cancel_all()
            self._theme.close()
        super().closeEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        stop = next_tab_stop(self, self.focusWidget(), forward=forward)
        if stop is None:
            return False
        reason = Qt.FocusReason
        stop.setFocus(reason.TabFocusReason if forward else reason.BacktabFocusReason)
        return True

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            self._rest_while_unseen()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._rest_while_unseen()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._rest_while_unseen()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._update_commands()

    def _lay_out(self) -> None:
        centre = QVBoxLayout()
        centre.setSpacing(0)
        centre.addWidget(self._top)
        centre.addWidget(self.notice_bar)
        centre.addWidget(self.panes, 1)
        upper = QHBoxLayout()
        upper.setSpacing(0)
        upper.addWidget(self._sidebar)
        upper.addLayout(centre, 1)
        page = QWidget(self)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(upper, 1)
        layout.addWidget(self._status)
        self.setCentralWidget(page)

    def _connect(self) -> None:
        self._sidebar.chosen.connect(self._show_chat)
        self._sidebar.new_wanted.connect(self._new_chat)
        self._sidebar.delete_wanted.connect(self._ask_to_delete)
        self._top.sidebar_wanted.connect(self._toggle_sidebar)
        self._top.split_wanted.connect(self._split)
        self.notice_bar.action_wanted.connect(self._do_notice_action)
        self.panes.changed.connect(self._update_commands)
        chats, models = self._services.chats, self._services.models
        self._disconnects = (
            chats.chat_added.connect(lambda _chat: self._update_commands()),
            chats.chat_removed.connect(self._on_chat_removed),
            chats.chat_changed.connect(lambda _chat: self._update_commands()),
            models.changed.connect(self._update_commands),
            self._services.settings.changed.connect(self._dress),
        )

    def _handlers(self) -> dict[CommandId, Callable[[], object]]:
        return {
            CommandId.NEW_CHAT: self._new_chat,
            CommandId.SEARCH: self._search,
            CommandId.RENAME_CHAT: self._rename,
            CommandId.DELETE_CHAT: lambda: self._ask_to_delete(self._meant_chat()),
            CommandId.STOP: lambda: self.panes.active.stop(),
            CommandId.QUIT: self.close,
            CommandId.SIDEBAR: self._toggle_sidebar,
            CommandId.SPLIT: self._split,
            CommandId.CLOSE_PANE: lambda: self.panes.close_pane(self.panes.active),
            CommandId.NEXT_PANE: self.panes.activate_next,
            CommandId.NEXT_CHAT: lambda: self._step(1),
            CommandId.PREVIOUS_CHAT: lambda: self._step(-1),
            CommandId.THEME_SYSTEM: lambda: self._choose_theme(ThemeChoice.SYSTEM),
            CommandId.THEME_LIGHT: lambda: self._choose_theme(ThemeChoice.LIGHT),
            CommandId.THEME_DARK: lambda: self._choose_theme(ThemeChoice.DARK),
            CommandId.CHOOSE_MODEL: self._top.selector.open_menu,
            CommandId.USE_FILE: self.context.model_actions.choose_file,
            CommandId.USE_FOLDER: self.context.model_actions.choose_folder,
            CommandId.UNLOAD: self.context.model_actions.unload,
        }

    def _update_commands(self) -> None:
        chat, chats = self.panes.active.chat, self._services.chats.chats
        self.commands.update(
            WindowState(
                has_chat=chat is not None,
                is_running=chat is not None and chat.running_message is not None,
                num_chats=len(chats),
                num_panes=len(self.panes.panes),
                can_split=self.panes.can_split,
                has_model=self._services.models.state is EngineState.READY,
                has_sidebar=not self._sidebar.isHidden(),
                theme=self._services.settings.settings.appearance.theme,
            )
        )
        is_single = len(self.panes.panes) == 1
        self._top.set_title(chat.title if chat is not None and is_single else "")
        self._top.set_can_split(can_split=self.panes.can_split)
        self._sidebar.set_open(chat)

    def _rest_while_unseen(self) -> None:
        is_unseen = self.isMinimized() or not self.isVisible()
        self.context.frames.set_paused(is_paused=is_unseen)
        self.context.figures.set_paused(is_paused=is_unseen)

    def _dress(self, settings: Settings) -> None:
        appearance = settings.appearance
        if self._dressed_as != appearance:
            self._dressed_as = appearance
            self._theme.apply(appearance.theme, appearance.text_size)

    def _choose_theme(self, choice: ThemeChoice) -> None:
        try:
            self._services.settings.change("appearance.theme", choice)
        except StudioError as error:
            self._services.notices.report(error)
        self._update_commands()

    def _show_chat(self, chat: Conversation) -> None:
        self.context.tasks.start(self.panes.show_chat(chat))

    def _new_chat(self) -> None:
        self.context.tasks.start(self._show_new_chat())

    async def _show_new_chat(self) -> None:
        await self.panes.show_chat(await self._empty_chat())

    async def _empty_chat(self) -> Conversation:
        """A chat to begin with: one that nothing was done with yet, where there is one."""
        for chat in self._services.chats.chats:
            is_untouched = chat.is_loaded and not chat.messages and not chat.draft
            if is_untouched and chat.title == NEW_CHAT_TITLE:
                return chat
        return await self._services.chats.new_chat()

    def _split(self) -> None:
        if self.panes.can_split:
            self.context.tasks.start(self._split_with_other())

    async def _split_with_other(self) -> None:
        hidden = [chat for chat in self._services.chats.chats if self.panes.pane_of(chat) is None]
        await self.panes.split(hidden[0] if hidden else await self._services.chats.new_chat())

    def _step(self, places: int) -> None:
        """Show the chat so many places further down the list, skipping what stands in other panes."""
        chats, active = self._services.chats.chats, self.panes.active
        free = [chat for chat in chats if self.panes.pane_of(chat) in (None, active)]
        if active.chat in free and len(free) > 1:
            self._show_chat(free[(free.index(active.chat) + places) % len(free)])

    def _search(self) -> None:
        self._sidebar.show()
        self._sidebar.focus_search()
        self._update_commands()

    def _toggle_sidebar(self) -> None:
        self._sidebar.setVisible(self._sidebar.isHidden())
        self._update_commands()

    def _meant_chat(self) -> Conversation | None:
        """The chat that the keyboard stands on in the list, or else the one in the active pane."""
        return self._sidebar.current_chat() or self.panes.active.chat

    def _rename(self) -> None:
        chat = self._meant_chat()
        if chat is not None:
            self._sidebar.show()
            self._sidebar.edit_title(chat)

    def _ask_to_delete(self, chat: Conversation | None) -> None:
        if chat is None:
            return
        question = Question(
            text=tr("Delete “{title}”?").format(title=chat.title),
            detail=tr("The chat and its messages are gone for good."),
            do=tr("Delete"),
        )
        confirm(question, lambda: self._delete(chat), self)

    def _delete(self, chat: Conversation) -> None:
        self.context.tasks.start(self._services.chats.delete(chat))

    def _on_chat_removed(self, chat: Conversation) -> None:
        pane = self.panes.pane_of(chat)
        if pane is not None and len(self.panes.panes) > 1:
            self.panes.close_pane(pane)
        elif pane is not None:
            self.context.tasks.start(self._show_first_chat())
        self._update_commands()

    async def _show_first_chat(self) -> None:
        chats = self._services.chats
        await self.panes.active.show_chat(chats.chats[0] if chats.chats else await chats.new_chat())
        self.panes.activate(self.panes.active)

    def _do_notice_action(self, action: NoticeAction) -> None:
        match action:
            case NoticeAction.LOAD_MODEL:
                self._top.selector.open_menu()
            case NoticeAction.GET_MODEL:
                self.context.model_actions.get_starter()
            case NoticeAction.NEW_CHAT:
                self._new_chat()
