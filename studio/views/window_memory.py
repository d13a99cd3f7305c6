"""The window opens as it was closed: where, how large, with the same chats side by side.

Its panels are remembered by `window_parts`. GUI thread. Qt sees to it that it is on a screen that is there now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, QObject

from studio.models.errors import SettingError
from studio.models.window_place import WindowPlace, read_place, write_place

if TYPE_CHECKING:
    from studio.views.main_window import MainWindow

_SETTING = "window.place"


class WindowMemory(QObject):
    """Remembers when the window is closed; `recall` what was remembered, once the window is shown."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._settings = window.context.services.settings
        window.installEventFilter(self)

    def recall(self) -> None:
        """Do nothing the first time."""
        place = read_place(self._settings.settings.window.place)
        if place is None:
            return
        window = self._window
        window.restoreGeometry(QByteArray(place.geometry))
        window.context.tasks.start(self._show(place.chat_ids))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window and event.type() == QEvent.Type.Close:
            self._remember()
        return False

    async def _show(self, chat_ids: tuple[int, ...]) -> None:
        """Those that are still there; the first one in the pane there is, the others beside it."""
        panes, chats = self._window.panes, self._window.context.services.chats.chats
        found = {chat.chat_id: chat for chat in chats}
        known = [found[one] for one in chat_ids if one in found]
        if known:
            await panes.show_columns(known)

    def _remember(self) -> None:
        window = self._window
        shown = [pane.chat for pane in window.panes.panes]
        place = WindowPlace(
            geometry=bytes(window.saveGeometry().data()),
            chat_ids=tuple(chat.chat_id for chat in shown if chat and not chat.is_temporary),
        )
        try:
            self._settings.change(_SETTING, write_place(place))
        except SettingError as error:
            window.context.services.notices.report(error)
