"""Layby's icon in the system tray, where the user wants one: closing the window then leaves the chats running.

GUI thread. Where the desktop has no tray, the setting does nothing and closing the window ends the program as ever. The
icon has a slow clock of its own, since the window's rest while it is hidden.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QMenu, QSystemTrayIcon, QWidget

from engine.api import EngineSnapshot
from studio.models.errors import SettingError
from studio.models.settings import Settings
from studio.services.notice_service import NoticeService
from studio.services.run_service import RunService
from studio.services.settings_service import SettingsService
from studio.views.icons import app_icon
from studio.views.status_words import work_parts
from studio.views.words import tr

_LOOK_MS = 2_000
_TOLD = "window.was_told_of_tray"


class Tray(QObject):
    """`icon` is there while the setting is on and the desktop has a tray."""

    def __init__(
        self,
        settings: SettingsService,
        runs: RunService,
        notices: NoticeService,
        window: QWidget,
        *,
        show: Callable[[], object],
        quit_program: Callable[[], object],
    ) -> None:
        super().__init__(window)
        self.icon: QSystemTrayIcon | None = None
        self._settings = settings
        self._runs = runs
        self._notices = notices
        self._show = show
        self._menu = QMenu(window)
        self._menu.addAction(tr("Show Layby"), show)
        self._menu.addAction(tr("Quit"), quit_program)
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self.refresh)
        self._disconnect = settings.changed.connect(self._follow)
        self._follow(settings.settings)

    def close(self) -> None:
        """Take the icon away and follow the settings no longer."""
        self._disconnect()
        self._take_away()

    @property
    def keeps_running(self) -> bool:
        """Whether closing the window leaves Layby in the tray."""
        return self.icon is not None

    def tell_once(self) -> None:
        """Say, the first time only, that Layby is still there."""
        if self.icon is None or self._settings.settings.window.was_told_of_tray:
            return
        self.icon.showMessage(
            tr("Layby is still running"),
            tr("Chats go on in the background. Quit is in the menu of this icon."),
            app_icon(),
        )
        try:
            self._settings.change(_TOLD, True)
        except SettingError as error:
            self._notices.report(error)

    def refresh(self) -> None:
        """Bring the icon's words up to date."""
        if self.icon is not None:
            self.icon.setToolTip(state_words(self._runs.snapshot()))

    def _follow(self, settings: Settings) -> None:
        is_wanted = settings.window.has_tray_icon and QSystemTrayIcon.isSystemTrayAvailable()
        if is_wanted and self.icon is None:
            self.icon = QSystemTrayIcon(app_icon(), self)
            self.icon.setContextMenu(self._menu)
            self.icon.activated.connect(self._on_activated)
            self.refresh()
            self.icon.show()
            self._timer.start()
        elif not is_wanted:
            self._take_away()

    def _take_away(self) -> None:
        self._timer.stop()
        if self.icon is not None:
            self.icon.hide()
            self.icon.deleteLater()
            self.icon = None

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason is QSystemTrayIcon.ActivationReason.Trigger:
            self._show()


def state_words(snapshot: EngineSnapshot) -> str:
    """ "Layby: 2 running, 1 parked"; only what there is."""
    parts = work_parts(snapshot)
    return tr("Layby: {state}").format(state=", ".join(parts)) if parts else "Layby"
