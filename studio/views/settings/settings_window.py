"""Opens the settings, at most once at a time, beside the window. GUI thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QWidget

from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService
from studio.views.settings.dialog import OwnPage, SettingsDialog
from studio.views.settings.lead_page import Elsewhere


class SettingsWindow:
    """`dialog` is the open one, or None."""

    def __init__(
        self,
        settings: SettingsService,
        notices: NoticeService,
        parent: QWidget,
        *,
        own_pages: Sequence[OwnPage] = (),
        footer: Callable[[QWidget], QWidget] | None = None,
    ) -> None:
        self._footer = footer
        self.own_pages = own_pages
        self.elsewhere: dict[str, Elsewhere] = {}
        """By group: settings that have their place in another window."""
        self.dialog: SettingsDialog | None = None
        self._settings = settings
        self._notices = notices
        self._parent = parent

    def open(self, *, page: str = "", setting: str = "") -> None:
        """Show the settings, or bring them to the front; at a page by its title, or at a setting by its key.

        A setting whose place is elsewhere is shown there.
        """
        if (place := self.elsewhere.get(setting.partition(".")[0])) is not None:
            place.open(setting)
            return
        if self.dialog is None:
            self.dialog = SettingsDialog(
                self._settings,
                self._notices,
                self._parent,
                own_pages=self.own_pages,
                footer=self._footer,
            )
            self.dialog.finished.connect(self._on_finished)
        if page:
            self.dialog.show_page(page)
        self.dialog.show()
        if setting:
            self.dialog.show_setting(setting)
        self.dialog.activateWindow()

    def close(self) -> None:
        """Close the settings if they are open."""
        if self.dialog is not None:
            self.dialog.close()

    def _on_finished(self) -> None:
        self.dialog = None
