"""How each model is loaded: the settings for all, and over them what the user has set for this one.

Written on the GUI thread; `options_for` may be called on any thread. A choice stays until the user changes it, whoever
loads the model: the window, a request that names it, or `layby serve`. A flag or variable beats it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path

from engine.api import LoadOptions
from engine.errors import EngineError
from engine.system_faults import system_fault
from studio.models.errors import SettingError
from studio.models.load_choices import SETTING_OF, LoadChoices
from studio.models.setting_field import SettingValue
from studio.models.signal import Signal
from studio.services.safe_file import set_aside, write_atomically
from studio.services.settings_service import SettingSource, SettingsService

_log = logging.getLogger(__name__)

_FIXED_BY = frozenset({SettingSource.FLAG, SettingSource.ENVIRONMENT})


class LoadSettingsStore:
    """Choices are kept by the model's path: they outlive a new name."""

    def __init__(self, path: Path, settings: SettingsService) -> None:
        self.changed: Signal[[Path]] = Signal()
        """The choices for this model changed."""
        self._path = path
        self._settings = settings
        self._choices = self._read()

    def choices(self, model: Path) -> LoadChoices:
        """What is set for this model alone."""
        return self._choices.get(str(model), LoadChoices())

    def options_for(self, model: Path) -> LoadOptions:
        """How this model is loaded now. Raises InvalidRequest for settings that make no sense."""
        return self.preview(self.choices(model))

    def preview(self, choices: LoadChoices) -> LoadOptions:
        """How a model with these choices would be loaded."""
        return choices.over(self._settings.settings.load_options(), fixed=self.fixed())

    def fixed(self) -> frozenset[str]:
        """The choices that a flag or variable makes for all models, until the program ends."""
        return frozenset(
            name for name, key in SETTING_OF.items() if self._settings.source(key) in _FIXED_BY
        )

    def own_values(self, model: Path) -> dict[str, SettingValue]:
        """By the key of the setting for all: what counts for this model instead of it."""
        chosen, fixed = self.choices(model), self.fixed()
        return {
            key: value
            for name, key in SETTING_OF.items()
            if (value := getattr(chosen, name)) is not None and name not in fixed
        }

    def change(self, model: Path, choices: LoadChoices) -> None:
        """Keep these. Raises InvalidRequest for a value out of bounds, SettingError if they cannot be written."""
        choices.over(LoadOptions())
        kept = {**self._choices, str(model): choices}
        kept = {name: each for name, each in kept.items() if not each.is_empty}
        records = {name: each.as_record() for name, each in kept.items()}
        try:
            write_atomically(self._path, json.dumps(records, indent=2).encode() + b"\n")
        except OSError as error:
            raise SettingError(
                f"the load settings cannot be written to {self._path} ({system_fault(error)}); "
                "make room or make it writable, then try again"
            ) from error
        self._choices = kept
        self.changed.emit(model)

    def keep_pool(self, model: Path, pool_tokens: int) -> None:
        """It has been loaded with such a pool and shall be so from now on, as far as a flag or variable lets it.

        Raises as `change`.
        """
        if "pool_tokens" not in self.fixed():
            self.change(model, replace(self.choices(model), pool_tokens=pool_tokens))

    def move(self, old: Path, new: Path) -> None:
        """The model lies elsewhere now. Raises as `change`."""
        choices = self.choices(old)
        if not choices.is_empty:
            self.change(old, LoadChoices())
            self.change(new, choices)

    def _read(self) -> dict[str, LoadChoices]:
        try:
            records = json.loads(self._path.read_text("utf-8"))
            return {name: LoadChoices.from_record(record) for name, record in records.items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning("the load settings %s cannot be read: %s", self._path, error.strerror)
        except (ValueError, TypeError, AttributeError, RecursionError, EngineError) as error:
            aside = set_aside(self._path)
            _log.warning("the load settings were not readable (%s), kept as %s", error, aside)
        return {}
