"""Reads, merges, changes and writes the settings; the only one who knows where a value came from.

Precedence: flag > environment variable > settings file > default. Only the file's layer is written.
GUI thread; the file has a few hundred bytes and is written on a change only. No Qt.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.errors import SettingError
from studio.models.json_faults import json_fault
from studio.models.setting_field import SettingValue
from studio.models.settings import Settings, all_settings, setting_field
from studio.models.signal import Signal
from studio.services.safe_file import set_aside, write_atomically

_log = logging.getLogger(__name__)


class SettingSource(Enum):
    """Which layer a value in force comes from; the first two cannot be changed in the window."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class SettingsService:
    """`settings` is what is in force; `changed` is emitted with it after every change."""

    def __init__(
        self,
        path: Path,
        *,
        environment: Mapping[str, str],
        flags: Mapping[str, SettingValue],
    ) -> None:
        """Read the file at `path`; a broken one is set aside and `problem` says so.

        `environment` holds variables by name, `flags` values by key. Raises SettingError for a
        variable or flag that is not allowed.
        """
        self.changed: Signal[[Settings]] = Signal()
        self.problem: SettingError | None = None
        """What was wrong with the settings file, for a notice once there is a window."""
        self._path = path
        self._flags = {
            key: setting_field(key).check(value, source=key) for key, value in flags.items()
        }
        self._environment = _from_variables(environment)
        self._file = self._read()
        self.settings = self._merge()

    def source(self, key: str) -> SettingSource:
        """Where the value in force comes from."""
        if key in self._flags:
            return SettingSource.FLAG
        if key in self._environment:
            return SettingSource.ENVIRONMENT
        return SettingSource.FILE if key in self._file else SettingSource.DEFAULT

    def change(self, key: str, value: SettingValue) -> None:
        """Set one value of the file's layer and write the file.

        A flag or variable still wins until the program ends. Raises KeyError for an unknown key,
        SettingError for a value that is not allowed or a file that cannot be written.
        """
        self.change_several({key: value})

    def change_several(self, values: Mapping[str, SettingValue]) -> None:
        """The same for several at once, all or none, the file written once."""
        layer = dict(self._file)
        for key, value in values.items():
            declared = setting_field(key)
            checked = declared.check(value, source=declared.info.title)
            if checked == declared.default:
                layer.pop(key, None)  # so that a better default of a later version is taken
            else:
                layer[key] = checked
        self._replace_file_layer(layer)

    def reset(self, key: str) -> None:
        """Go back to the default and write the file; raises as `change` does."""
        self.change(key, setting_field(key).default)

    def _replace_file_layer(self, layer: dict[str, SettingValue]) -> None:
        if layer == self._file:
            return
        try:
            write_atomically(self._path, _to_json(layer))
        except OSError as error:
            raise SettingError(
                f"the settings file {self._path} cannot be written ({system_fault(error)}); "
                "make room or make it writable, then change the setting again"
            ) from error
        self._file = layer
        before, self.settings = self.settings, self._merge()
        if before != self.settings:
            self.changed.emit(self.settings)

    def _merge(self) -> Settings:
        settings = Settings()
        for key, value in {**self._file, **self._environment, **self._flags}.items():
            settings = settings.with_value(key, value)
        return settings

    def _read(self) -> dict[str, SettingValue]:
        try:
            data = json.loads(self._path.read_text("utf-8"))
            if not isinstance(data, dict):
                raise ValueError("it is no JSON object")
        except FileNotFoundError:
            return {}
        except OSError as error:
            self.problem = SettingError(
                f"the settings file {self._path} cannot be read ({system_fault(error)}); "
                "the defaults are used"
            )
            return {}
        except (ValueError, RecursionError) as error:
            aside = set_aside(self._path)
            self.problem = SettingError(
                f"the settings file was not readable ({json_fault(error)}); the defaults are used and the "
                f"old file is kept as {aside}"
            )
            return {}
        return _from_json(data)


def _from_variables(environment: Mapping[str, str]) -> dict[str, SettingValue]:
    layer: dict[str, SettingValue] = {}
    for declared in all_settings():
        names = (declared.info.env, *declared.info.env_aliases)
        if (name := next((each for each in names if each in environment), None)) is not None:
            layer[declared.key] = declared.parse(environment[name], source=name)
    return layer


def _from_json(data: Mapping[str, object]) -> dict[str, SettingValue]:
    """The known, allowed values of `{group: {name: value}}`; the others are logged and left out."""
    layer: dict[str, SettingValue] = {}
    declared = {entry.key: entry for entry in all_settings()}
    for group, values in data.items():
        if not isinstance(values, dict):
            _log.warning("settings file: %s is no group; left out", group)
            continue
        for name, value in values.items():
            key = f"{group}.{name}"
            if key not in declared:
                _log.warning("settings file: there is no setting %s; left out", key)
                continue
            try:
                layer[key] = declared[key].check(value, source=key)
            except SettingError as error:
                _log.warning("settings file: %s; the default is used", error)
    return layer


def _to_json(layer: Mapping[str, SettingValue]) -> bytes:
    groups: dict[str, dict[str, object]] = {}
    for entry in all_settings():
        if entry.key in layer:
            groups.setdefault(entry.group, {})[entry.name] = _plain(layer[entry.key])
    return json.dumps(groups, indent=2, ensure_ascii=False).encode() + b"\n"


def _plain(value: SettingValue) -> object:
    return value.value if isinstance(value, Enum) else value
