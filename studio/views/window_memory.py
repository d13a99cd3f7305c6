"""The window opens as it was: where, how large, with the same chats side by side and the same panels. GUI thread.

What changes is kept soon after, so that a program that was killed comes back with the chats that were open, and all of
it once more when the window closes. Qt sees to it that the window is on a screen that is there now.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, QObject, QTimer
from PySide6.QtWidgets import QWidget

from studio.models.errors import SettingError
from studio.models.window_place import WindowPlace, read_place, write_place
from studio.views.window_size import reveal

if TYPE_CHECKING:
    from studio.views.main_window import MainWindow

_log = logging.getLogger(__name__)
_PLACE, _SIDEBAR, _POOL_PANEL = "window.place", "window.has_sidebar", "window.has_pool_panel"
_PAUSE_MS = 500
"""After the last change: who goes through many chats has them written once."""
_TURNS = (QEvent.Type.Show, QEvent.Type.Hide)


class WindowMemory(QObject):
    """`restore_parts` before the window is shown, `recall` afterwards, `close` when it closes."""

    def __init__(self, window: MainWindow, sidebar: QWidget, pool_panel: QWidget) -> None:
        super().__init__(window)
        self._window = window
        self._sidebar = sidebar
        self._pool_panel = pool_panel
        self._settings = window.context.services.settings
        self._was_told = False
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_PAUSE_MS)
        self._later.timeout.connect(self._keep_and_tell)
        window.panes.changed.connect(self._later.start)
        for part in (sidebar, pool_panel):
            part.installEventFilter(self)

    def restore_parts(self) -> None:
        """Show the panels that were shown, as far as the screen has room; a chat's settings are for the moment."""
        window = self._settings.settings.window
        self._sidebar.setHidden(not window.has_sidebar)
        if window.has_pool_panel:
            reveal(self._pool_panel, instead_of=(self._sidebar,))

    def recall(self) -> None:
        """Go where the window was, with its chats; nothing the first time."""
        place = read_place(self._settings.settings.window.place)
        if place is None:
            return
        window = self._window
        window.restoreGeometry(QByteArray(place.geometry))
        window.context.tasks.start(self._show(place.chat_ids))

    def close(self) -> None:
        """Keep how it is now, for the last time; nobody is left to be told of a failure."""
        self._later.stop()
        self._window.panes.changed.disconnect(self._later.start)
        for part in (self._sidebar, self._pool_panel):
            part.removeEventFilter(self)
        self._keep()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _TURNS and self._window.isVisible():
            self._later.start()
        return False

    async def _show(self, chat_ids: tuple[int, ...]) -> None:
        """Those that are still there; the first one in the pane there is, the others beside it."""
        panes, chats = self._window.panes, self._window.context.services.chats.chats
        found = {chat.chat_id: chat for chat in chats}
        known = [found[one] for one in chat_ids if one in found]
        if known:
            await panes.show_columns(known)

    def _keep_and_tell(self) -> None:
        error = self._keep()
        if error is not None and not self._was_told:  # it would come again with every chat
            self._was_told = True
            self._window.context.services.notices.report(error)

    def _keep(self) -> SettingError | None:
        """What failed, which the log has."""
        window = self._window
        shown = [pane.chat for pane in window.panes.panes]
        place = WindowPlace(
            geometry=bytes(window.saveGeometry().data()),
            chat_ids=tuple(chat.chat_id for chat in shown if chat and not chat.is_temporary),
        )
        try:
            self._settings.change_several(
                {
                    _PLACE: write_place(place),
                    _SIDEBAR: not self._sidebar.isHidden(),
                    _POOL_PANEL: not self._pool_panel.isHidden(),
                }
            )
        except SettingError as error:
            _log.warning("how the window looks is not remembered: %s", error)
            return error
        return None
