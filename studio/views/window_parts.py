"""Which parts of the window are shown when it opens: those that were when it was closed. GUI thread."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from PySide6.QtWidgets import QWidget

from studio.models.errors import SettingError
from studio.services.settings_service import SettingsService
from studio.views.window_size import reveal

_log = logging.getLogger(__name__)
_SIDEBAR = "window.has_sidebar"
_POOL_PANEL = "window.has_pool_panel"


@dataclass(frozen=True, slots=True)
class WindowParts:
    """The parts that a user hides and shows for good; a chat's settings are shown for the moment."""

    settings: SettingsService
    sidebar: QWidget
    pool_panel: QWidget

    def restore(self) -> None:
        """Show what was shown, as far as the screen has room."""
        window = self.settings.settings.window
        self.sidebar.setHidden(not window.has_sidebar)
        if window.has_pool_panel:
            reveal(self.pool_panel, instead_of=(self.sidebar,))

    def remember(self) -> None:
        """Keep what is shown now."""
        try:
            self.settings.change(_SIDEBAR, not self.sidebar.isHidden())
            self.settings.change(_POOL_PANEL, not self.pool_panel.isHidden())
        except SettingError as error:  # the window is closing: nobody is left to be told
            _log.warning("how the window looked is not remembered: %s", error)
