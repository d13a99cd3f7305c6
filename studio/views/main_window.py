"""The window: side bar, panes, bars and commands put together. GUI thread.

It asks the services and shows what they say. Commands are listed in `actions`; here is what each of them does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import (
    QCloseEvent,
    QKeyEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QApplication, QHBoxLayout, QMainWindow, QVBoxLayout, QWidget

from engine.api import EngineState
from studio.models.chat import Conversation
from studio.models.notices import Notice, NoticeAction
from studio.models.settings import AppearanceSettings, Settings
from studio.services.run_service import Steer
from studio.views.actions import CommandId
from studio.views.announcer import Announcer
from studio.views.app_commands import AppCommands
from studio.views.chat.foot_view import MessageAction
from studio.views.chat_commands import ChatCommands
from studio.views.chat_navigation import ChatNavigation
from studio.views.chat_window_commands import ChatWindowCommands, Home
from studio.views.context import Context
from studio.views.focus_order import come_home, move_focus, press_with_enter
from studio.views.icons import app_icon
from studio.views.menu_actions import Actions
from studio.views.models.models_window import ModelsPage, ModelsWindow
from studio.views.monitor.pool_panel import PoolPanel
from studio.views.monitor.pool_place import PoolPlace
from studio.views.monitor.status_line import StatusLine
from studio.views.notices.notice_bar import NoticeBar
from studio.views.paged_dialog import DialogOpener
from studio.views.panes import PaneArea
from studio.views.ports import WindowServices
from studio.views.quit_flow import QuitFlow
from studio.views.reload_flow import ReloadFlow
from studio.views.rest import Rest
from studio.views.server.server_window import ServerWindow
from studio.views.settings.pending_bar import PendingBars
from studio.views.settings.settings_window import SettingsWindow
from studio.views.settings_places import lead_from
from studio.views.settling import Settling
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.speech import say
from studio.views.status_words import title_words
from studio.views.tasks import Tasks
from studio.views.theme import Theme
from studio.views.top_bar import TopBar
from studio.views.window_memory import WindowMemory
from studio.views.window_size import fit_to_screen, toggle
from studio.views.words import tr


class MainWindow(QMainWindow):
    """Build it on the running loop, show it, and `await wait_closed()`; then it may be deleted."""

    def __init__(self, services: WindowServices) -> None:
        super().__init__()
        self.setWindowTitle("Layby")
        self.setWindowIcon(app_icon())
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)  # the services end after it
        fit_to_screen(self)
        self._services = services
        services.runs.program_word, services.runs.summary_word = tr("API request"), tr("Summary")
        self._application = cast(QApplication, QApplication.instance())
        self._theme = Theme(self._application)
        tasks = Tasks(services.notices)
        self.reload_flow = ReloadFlow(services, tasks, self)
        self.context = Context.of_window(self, services, self._theme, tasks, loads=self.reload_flow)
        self._closed = asyncio.Event()
        self._is_quitting = False
        self._dressed_as: AppearanceSettings | None = None
        self._settling = Settling(self._update_commands, self)
        self._dress(services.settings.settings)
        self._sidebar = Sidebar(self.context, self)
        self._top = TopBar(self.context, self)
        self.notice_bar = NoticeBar(services.notices, self._theme, self)
        self.panes = PaneArea(self.context, self)
        self._navigation = ChatNavigation(self.context, self.panes)
        self.pool_panel = PoolPanel(self.context, self)
        self._make_windows()
        self._status = StatusLine(self.context, self)
        self.chat_commands = ChatCommands(
            self.context,
            self._sidebar,
            self.panes,
            navigation=self._navigation,
            pool_panel=self.pool_panel,
            window=self,
        )
        self._lay_out()
        self.memory = WindowMemory(self, self._sidebar, self.pool_panel)
        self.memory.restore_parts()
        windows = self.chat_commands.windows
        Rest(self.context, self, has_others=lambda: bool(windows.windows))
        self._make_commands()
        self._announcer = Announcer(
            services.chats, lambda text: say(self, text), services.notices.notices
        )
        self._connect()
        self._update_commands()
        self._navigation.show_first()

    def _make_windows(self) -> None:
        services = self._services
        self.quit_flow = QuitFlow(
            services,
            self,
            quit_window=self.quit,
            own_windows=lambda: self.chat_commands.windows.windows,
        )
        self.settings_window = SettingsWindow(
            services,
            self,
            footer=lambda at: PendingBars(services, self.reload_flow, self.quit_flow, at),
        )
        self.models_window = DialogOpener(self._make_models_window)
        self.server_window = DialogOpener(lambda: ServerWindow(self.context, self))

    def _make_commands(self) -> None:
        self.app = AppCommands(
            self.context,
            self.settings_window,
            self._navigation,
            self,
            meant_chats=self.chat_commands.meant_chats,
            attach=lambda paths: self.panes.active.attaching.attach(paths),
        )
        lead_from(self.settings_window, server=self.server_window, models=self.models_window)
        handlers = self._handlers() | self.app.handlers() | self.chat_commands.handlers()
        self.commands = Actions(self.menuBar(), handlers, self)
        self.app.attach(self.commands)
        self._sidebar.actions_of_rows.export_wanted.connect(self.app.exchange.export_chats)
        home = self._home()
        self._navigation.windows.equip = lambda window: ChatWindowCommands(
            window, self.context, home
        )

    def _home(self) -> Home:
        return Home(
            commands=self.commands,
            shortcuts=self.app.shortcuts,
            rows=self._sidebar.actions_of_rows,
            come_to_front=self.app.come_to_front,
            show=self._navigation.show,
            open_setting=lambda key: self.settings_window.open(setting=key),
            compare=self.chat_commands.compare.ask_of,
            do_notice=self._do_notice_action,
            open_tool_servers=self.app.open_tool_servers,
        )

    def _make_models_window(self) -> ModelsWindow:
        window = ModelsWindow(self.context, self)
        window.notice_bar.action_wanted.connect(self._do_notice_action)
        return window

    async def wait_closed(self) -> None:
        """Return once the user has closed the window."""
        await self._closed.wait()

    def quit(self) -> None:
        """Close for good, whatever the tray would do and whoever runs."""
        self._is_quitting = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        is_for_good = self._is_quitting or self._application.isSavingSession()
        if self.app.tray.keeps_running and not is_for_good:
            event.ignore()
            self.hide()
            self.app.tray.tell_once()
            return
        if event.spontaneous() and not is_for_good:  # the user's own hand
            event.ignore()
            QTimer.singleShot(0, self.quit_flow.quit)  # from within it would be hidden, not closed
            return
        if not self._closed.is_set():
            self._closed.set()
            self._close_parts()
        super().closeEvent(event)

    def _close_parts(self) -> None:
        self.memory.close()
        for disconnect in self._disconnects:
            disconnect()
        self._settling.close()
        self.app.close()
        self.chat_commands.close()
        self._announcer.close()
        self.reload_flow.close()
        self.quit_flow.close()
        self._top.selector.close_selector()
        self.notice_bar.close_bar()
        self.context.watch.set_paused(is_paused=True)
        self.settings_window.close()
        self.models_window.close()
        self.server_window.close()
        self._status.close_line()
        self.panes.close_area()
        self.context.kit.formulas.close()
        self.context.tasks.cancel_all()
        self._theme.close()

    def focusNextPrevChild(self, forward: bool) -> bool:
        return come_home(self, self.panes.active.composer) or move_focus(self, forward=forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not press_with_enter(self.focusWidget(), event):
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._closed.is_set():  # one comes even while its parts are deleted
            self._update_commands()

    def _lay_out(self) -> None:
        centre = QVBoxLayout()
        centre.setSpacing(0)
        centre.addWidget(self._top)
        centre.addWidget(self.notice_bar)
        centre.addLayout(strips := QVBoxLayout())
        self.chat_commands.undo_bar.stand_in(self._sidebar, strips, foot=self._sidebar.foot)
        centre.addWidget(self.chat_commands.compare.bar)
        centre.addWidget(self.panes, 1)
        upper = QHBoxLayout()
        upper.setSpacing(0)
        upper.addWidget(self._sidebar)
        upper.addLayout(centre, 1)
        inspector = self.chat_commands.inspector
        self._pool_place = PoolPlace(
            self.pool_panel, self.panes, above=inspector, row=upper, centre=centre
        )
        page = QWidget(self)
        layout = QVBoxLayout(page)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(upper, 1)
        layout.addWidget(self._status)
        self.setCentralWidget(page)
        self._pool_place.watch(page, foot=self._status)

    def _connect(self) -> None:
        self._sidebar.pool_wanted.connect(self._toggle_pool)
        self.chat_commands.undo_bar.changed.connect(self._update_commands)
        self._top.sidebar_wanted.connect(self._toggle_sidebar)
        self._top.split_wanted.connect(self._navigation.split)
        self._top.inspector_wanted.connect(self._toggle_inspector)
        self.chat_commands.inspector.close_wanted.connect(self._toggle_inspector)
        self.chat_commands.inspector.tool_servers_wanted.connect(self.app.open_tool_servers)
        self.notice_bar.action_wanted.connect(self._do_notice_action)
        self.panes.changed.connect(self._update_commands)
        self.panes.tools_wanted.connect(self._choose_tools)
        self.panes.changed.connect(self._pool_place.choose)
        self.pool_panel.chosen.connect(self._show_chat_of)
        self.pool_panel.figures.size_wanted.connect(
            lambda: self.settings_window.open_where_it_counts("engine.ctx_size")
        )
        self.context.watch.ticked.connect(self._update_commands)
        self._status.pool_wanted.connect(self._toggle_pool)
        self._status.server_wanted.connect(self.server_window.open)
        self.context.model_actions.library_wanted.connect(self.models_window.open)
        self.context.model_actions.download_wanted.connect(
            lambda: self.models_window.open(ModelsPage.DOWNLOADS)
        )
        self.pool_panel.close_wanted.connect(self._toggle_pool)
        chats, models = self._services.chats, self._services.models
        self._disconnects = (
            chats.chat_added.connect(lambda _chat: self._settling.ask()),
            chats.chat_removed.connect(self._on_chat_removed),
            chats.chat_changed.connect(lambda _chat: self._settling.ask()),
            models.changed.connect(self._update_commands),
            self._services.settings.changed.connect(self._on_settings_changed),
            self._services.downloads.arrived.connect(
                lambda _name: self.context.tasks.start(models.refresh())
            ),
        )

    def _handlers(self) -> dict[CommandId, Callable[[], object]]:
        return {
            CommandId.SEARCH: self._search,
            CommandId.FIND: lambda: self.panes.active.open_find(),
            CommandId.STOP: lambda: self.panes.active.stop(),
            CommandId.ANSWER_TOOL: self._navigation.show_asking,
            CommandId.ANSWER_AGAIN: lambda: self.panes.active.do(MessageAction.REGENERATE),
            CommandId.CONTINUE: lambda: self.panes.active.do(MessageAction.CONTINUE),
            CommandId.GO_FIRST: lambda: self.panes.active.steer(Steer.GO_FIRST),
            CommandId.PARK: lambda: self.panes.active.steer(Steer.PARK),
            CommandId.NEVER_PARK: lambda: self.panes.active.toggle_pin(),
            CommandId.ATTACH: lambda: self.panes.active.attaching.choose(),
            CommandId.SETTINGS: self.settings_window.open,
            CommandId.QUIT: self.quit_flow.quit,
            CommandId.SIDEBAR: self._toggle_sidebar,
            CommandId.POOL: self._toggle_pool,
            CommandId.INSPECTOR: self._toggle_inspector,
            CommandId.SPLIT: self._navigation.split,
            CommandId.CLOSE_PANE: lambda: self.panes.close_pane(self.panes.active),
            CommandId.NEXT_PANE: self.panes.activate_next,
            CommandId.NEXT_CHAT: lambda: self._navigation.step(1),
            CommandId.PREVIOUS_CHAT: lambda: self._navigation.step(-1),
            CommandId.CHOOSE_MODEL: self._top.selector.open_menu,
            CommandId.MODELS: self.models_window.open,
            CommandId.SERVER: self.server_window.open,
            CommandId.USE_FILE: self.context.model_actions.choose_file,
            CommandId.USE_FOLDER: self.context.model_actions.choose_folder,
            CommandId.UNLOAD: self.context.model_actions.unload,
        }

    def _update_commands(self) -> None:
        chat, chats = self.panes.active.chat, self._services.chats.chats
        self.commands.update(
            replace(
                self.panes.active.state(),
                is_asking=self._navigation.is_any_asking,
                can_export=self.chat_commands.has_messages,
                can_undo=self.chat_commands.undo_bar.undo is not None,
                num_chats=len(chats),
                num_panes=len(self.panes.panes),
                can_split=self.panes.can_split,
                has_model=self._services.models.state is EngineState.READY,
                has_sidebar=not self._sidebar.isHidden(),
                has_pool_panel=not self.pool_panel.isHidden(),
                has_inspector=not self.chat_commands.inspector.isHidden(),
                theme=self._services.settings.settings.appearance.theme,
            )
        )
        is_single = len(self.panes.panes) == 1
        self._top.set_title(title_words(chat) if chat is not None and is_single else "")
        self._top.set_can_split(can_split=self.panes.can_split)
        self._sidebar.set_open(chat, can_split=self.panes.can_split)
        self.chat_commands.inspector.show_chat(chat)
        self.app.exchange.show_chat(chat)

    def _on_settings_changed(self, settings: Settings) -> None:
        self._dress(settings)
        self._update_commands()

    def _dress(self, settings: Settings) -> None:
        appearance = settings.appearance
        if self._dressed_as != appearance:
            self._dressed_as = appearance
            self._theme.apply(appearance.theme, appearance.text_size)

    def _search(self) -> None:
        self.chat_commands.show_sidebar()
        self._sidebar.focus_search()
        self._update_commands()

    def _toggle_sidebar(self) -> None:
        toggle(self._sidebar, instead_of=(self.chat_commands.inspector, self.pool_panel))
        self._update_commands()

    def _toggle_pool(self) -> None:
        self._pool_place.choose()
        toggle(self.pool_panel, instead_of=(self._sidebar, self.chat_commands.inspector))
        self._update_commands()

    def _show_chat_of(self, request_id: str) -> None:
        if (chat := self._services.runs.chat_of(request_id)) is not None:
            self._navigation.show(chat)

    def _toggle_inspector(self) -> None:
        self.chat_commands.toggle_inspector()
        self._update_commands()

    def _choose_tools(self) -> None:
        self.chat_commands.choose_tools()
        self._update_commands()

    def _on_chat_removed(self, chat: Conversation) -> None:
        pane = self.panes.pane_of(chat)
        if pane is not None and len(self.panes.panes) > 1:
            self.panes.close_pane(pane)
        elif pane is not None:
            self._navigation.show_first()
        self._settling.ask()

    def _do_notice_action(self, notice: Notice) -> None:
        ways: dict[NoticeAction, Callable[[], object]] = {
            NoticeAction.LOAD_MODEL: self._top.selector.open_menu,
            NoticeAction.GET_MODEL: self.context.model_actions.get_starter,
            NoticeAction.NEW_CHAT: self._navigation.show_new,
            NoticeAction.OPEN_SERVER: self.server_window.open,
            NoticeAction.OPEN_MODELS: self.models_window.open,
            NoticeAction.CHOOSE_TOOLS: lambda: self._navigation.show_tools(notice.chat_id),
        }
        (ways | self.app.notice_ways())[notice.action]()
