"""Reads, merges, changes and writes the settings; the only place that knows where a value came from.

Precedence: flag > environment variable > settings file > default. Only the file's layer is ever written. Runs on the GUI
thread; the file is a few hundred bytes, written on a change only. No Qt.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from studio.models.setting_field import SettingValue
from studio.models.settings import Settings
from studio.models.signal import Signal


class SettingSource(Enum):
    """Which layer a value in force comes from; the first two cannot be changed in the window."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class SettingsService:
    """`settings` is what is in force; `changed` is emitted with it after every change."""

    def __init__(
        self, path: Path, *, environment: Mapping[str, str], flags: Mapping[str, SettingValue]
    ) -> None:
        """`environment` holds variables by name, `flags` checked values by key. Raises SettingError for a bad variable."""
        self.settings = Settings()
        self.changed: Signal[[Settings]] = Signal()
        raise NotImplementedError

    def source(self, key: str) -> SettingSource:
        """Where the value in force comes from."""
        raise NotImplementedError

    def change(self, key: str, value: SettingValue) -> None:
        """Set one value and write the file. Raises SettingError for a value not allowed or a file not writable."""
        raise NotImplementedError

    def reset(self, key: str) -> None:
        """Go back to the default and write the file."""
        raise NotImplementedError
