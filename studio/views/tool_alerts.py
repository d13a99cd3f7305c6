"""Calls the user back when a chat waits for an answer and nobody looks: the task bar, and the tray where there is one.

GUI thread. Listens until it is closed.
"""

from __future__ import annotations

from PySide6.QtWidgets import QApplication, QWidget

from studio.models.chat import Conversation, Message
from studio.services.chat_service import ChatService
from studio.views.icons import app_icon
from studio.views.status_words import title_words
from studio.views.tool_words import use_title
from studio.views.tray import Tray
from studio.views.words import shortened, tr

_TITLE_CHARS = 40


class ToolAlerts:
    """`told` is what the tray was given last, for those who look without one."""

    def __init__(self, chats: ChatService, tray: Tray, window: QWidget) -> None:
        self.told = ""
        self._tray = tray
        self._window = window
        self._disconnect = chats.desk.asked.connect(self._on_asked) if chats.desk else lambda: None

    def close(self) -> None:
        """Listen no more."""
        self._disconnect()

    def _on_asked(self, chat: Conversation, reply: Message) -> None:
        if self._window.isActiveWindow():
            return
        asked = next((use for use in reply.calls if use.state.is_open), None)
        tool = use_title(asked) if asked is not None else ""
        title = shortened(title_words(chat), _TITLE_CHARS)
        self.told = tr("{title} asks to run {tool}").format(title=title, tool=tool)
        QApplication.alert(self._window)
        if self._tray.icon is not None:
            self._tray.icon.showMessage(tr("Waiting for your answer"), self.told, app_icon())
