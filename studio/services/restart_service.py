"""Which settings count only once the program is started again, and the wish that it be. GUI thread, no Qt.

The composition root starts it again once everything is closed, as at any other end.
"""

from __future__ import annotations

from studio.models.setting_field import AppliesAt
from studio.models.settings import Settings, all_settings
from studio.models.signal import Signal
from studio.models.what_ran import WhatRan
from studio.services.settings_service import SettingsService


class RestartService:
    """`changed` is emitted when what is pending may have changed."""

    def __init__(self, settings: SettingsService) -> None:
        self.changed: Signal[[]] = Signal()
        self.what_ran: WhatRan | None = None
        """What the next program brings back, once the user wants this one to end and to start again."""
        self._settings = settings
        self._at_start = settings.settings
        settings.changed.connect(self._on_changed)

    def pending(self) -> tuple[str, ...]:
        """Keys of the settings that are not what the program was started with, and count from its next start."""
        return tuple(
            one.key
            for one in all_settings()
            if one.info.applies is AppliesAt.PROGRAM_START
            and self._at_start.value(one.key) != self._settings.settings.value(one.key)
        )

    def _on_changed(self, _settings: Settings) -> None:
        self.changed.emit()
