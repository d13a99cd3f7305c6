"""Chats in windows of their own: a pane, notices, the chat's settings when asked for. GUI thread.

They are part of the program's one main window: its services, theme and tickers, and they close with it. A chat stands
in one place only, in a pane of the main window or in a window of its own. Their commands are in `chat_window_commands`.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QVBoxLayout, QWidget

from studio.models.chat import Conversation
from studio.views.chat.chat_pane import ChatPane
from studio.views.context import Context
from studio.views.focus_order import come_home, move_focus, press_with_enter
from studio.views.icons import app_icon
from studio.views.inspector.inspector import Inspector
from studio.views.notices.notice_bar import NoticeBar
from studio.views.status_words import title_words
from studio.views.window_size import fit_to_screen

_SIZE = QSize(640, 720)
_LEAST_PX = 360


class ChatWindow(QMainWindow):
    """One chat. `shown` comes once it is there to be read, `closing` once, when it closes."""

    shown = Signal()
    closing = Signal(object)

    def __init__(self, context: Context, chat: Conversation, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowIcon(app_icon())
        self.setMinimumSize(_LEAST_PX, _LEAST_PX)
        fit_to_screen(self, _SIZE)
        self.chat = chat
        self.pane = ChatPane(context, self)
        self.pane.set_header_visible(is_visible=False)
        self.pane.set_active(is_active=True)
        self.notice_bar = NoticeBar(context.services.notices, context.theme, self)
        self.inspector = Inspector(context, self)
        self.inspector.show_chat(chat)
        self._lay_out()
        self._is_closed = False
        self.tell_title()
        context.tasks.start(self._show_chat())

    async def _show_chat(self) -> None:
        await self.pane.show_chat(self.chat)
        if not self._is_closed:
            self.shown.emit()

    def _lay_out(self) -> None:
        page = QWidget(self)
        row = QHBoxLayout()
        row.setSpacing(0)
        row.addWidget(self.pane, 1)
        row.addWidget(self.inspector)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.notice_bar)
        column.addLayout(row, 1)
        self.setCentralWidget(page)

    def tell_title(self) -> None:
        """The chat may have another title."""
        self.setWindowTitle(title_words(self.chat))

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.pane.close_pane()
            self.notice_bar.close_bar()
            self.inspector.close_inspector()
            self.closing.emit(self.chat)
        super().closeEvent(event)

    def focusNextPrevChild(self, forward: bool) -> bool:
        return come_home(self, self.pane.composer) or move_focus(self, forward=forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Close):
            self.close()
        elif not press_with_enter(self.focusWidget(), event):
            super().keyPressEvent(event)


class ChatWindows:
    """All of them."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        self._context = context
        self._parent = parent
        self.equip: Callable[[ChatWindow], object] = lambda _window: None
        """Called with each new window, to give it its commands."""
        self.windows: dict[Conversation, ChatWindow] = {}
        chats = context.services.chats
        self._disconnects = (
            chats.chat_removed.connect(self._on_removed),
            chats.chat_changed.connect(self._on_changed),
        )

    def close(self) -> None:
        """Close them all and open no more."""
        for disconnect in self._disconnects:
            disconnect()
        for window in tuple(self.windows.values()):
            window.close()

    def open(self, chat: Conversation) -> None:
        """Show a chat in a window of its own, or bring its window to the front."""
        if self.bring_forward(chat):
            return
        window = ChatWindow(self._context, chat, self._parent)
        window.closing.connect(lambda gone: self.windows.pop(gone, None))
        self.windows[chat] = window
        self.equip(window)
        window.show()
        window.activateWindow()

    def bring_forward(self, chat: Conversation) -> bool:
        """Whether the chat has a window, which then is at the front."""
        window = self.windows.get(chat)
        if window is None:
            return False
        if window.isMinimized():
            window.showNormal()
        window.raise_()
        window.activateWindow()
        return True

    def _on_removed(self, chat: Conversation) -> None:
        if (window := self.windows.get(chat)) is not None:
            window.close()

    def _on_changed(self, chat: Conversation) -> None:
        if (window := self.windows.get(chat)) is not None:
            window.tell_title()
