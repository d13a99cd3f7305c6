"""Every setting of Layby, in groups: one frozen dataclass and one settings page each.

A setting is one field here; its flag, its LAYBY_ variable, its line in the settings file and its
widget follow from it. Plain values, no Qt; `services.settings_service` merges their sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

from engine.api import LoadOptions
from studio.models.engine_settings import EngineSettings
from studio.models.local_server_settings import LocalServerSettings
from studio.models.park_settings import OnOff, ParkSettings, ParkTestSettings
from studio.models.setting_field import (
    AppliesAt,
    SettingField,
    SettingInfo,
    SettingValue,
    about,
    fields_of,
)
from studio.models.source_settings import SourceSettings
from studio.models.tool_settings import ToolSettings
from studio.models.window_settings import AppearanceSettings, Theme, WindowSettings

__all__ = [
    "AppearanceSettings",
    "LocalServerSettings",
    "LogLevel",
    "LogSettings",
    "Settings",
    "Theme",
]


class LogLevel(Enum):
    """How much is logged; the values are the names that `logging` knows, in small letters."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """What Layby writes down about itself."""

    level: LogLevel = field(
        default=LogLevel.INFO,
        metadata=about(
            SettingInfo(
                title="Log level",
                help="how much is logged",
                env="LAYBY_LOG_LEVEL",
                flags=("--log-level",),
                applies=AppliesAt.PROGRAM_START,
            )
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All groups. Immutable: `with_value` makes a changed copy."""

    engine: EngineSettings = field(default_factory=EngineSettings)
    park: ParkSettings = field(default_factory=ParkSettings)
    park_test: ParkTestSettings = field(default_factory=ParkTestSettings)
    tools: ToolSettings = field(default_factory=ToolSettings)
    server: LocalServerSettings = field(default_factory=LocalServerSettings)
    sources: SourceSettings = field(default_factory=SourceSettings)
    appearance: AppearanceSettings = field(default_factory=AppearanceSettings)
    window: WindowSettings = field(default_factory=WindowSettings)
    log: LogSettings = field(default_factory=LogSettings)

    def load_options(self) -> LoadOptions:
        """How a model is loaded, as the engine takes it."""
        engine, park, test = self.engine, self.park, self.park_test
        return LoadOptions(
            pool_tokens=engine.ctx_size,
            parallel=engine.parallel,
            batch_tokens=engine.batch_size,
            threads=engine.threads,
            device=engine.device,
            cpu_variant=engine.cpu_variant,
            kv_type=engine.kv_type,
            seed=engine.seed,
            context_shift=engine.context_shift,
            preempt_ram_mib=park.ram_mib,
            preempt_policy=park.policy.value,
            preempt_async=park.is_async,
            preempt_disk=Path(park.folder).expanduser().absolute() if park.folder else None,
            test_preempt_every=test.every_tokens,
            test_preempt_planner=test.planner is OnOff.ON,
            test_preempt_fail_save=test.fail_save,
            test_preempt_granularity=test.granularity,
            test_preempt_resume=test.resume.value,
            test_preempt_copy=test.copies,
        )

    def value(self, key: str) -> SettingValue:
        """The value of `group.name`; raises KeyError for a key that no setting has."""
        declared = setting_field(key)
        value: SettingValue = getattr(getattr(self, declared.group), declared.name)
        return value

    def with_value(self, key: str, value: SettingValue) -> Settings:
        """A copy with one value changed.

        Raises KeyError for an unknown key, SettingError for a value that is not allowed.
        """
        declared = setting_field(key)
        group: Any = getattr(self, declared.group)
        checked = declared.check(value, source=key)
        changed: Any = {declared.group: replace(group, **{declared.name: checked})}
        return replace(self, **changed)


def all_settings() -> tuple[SettingField, ...]:
    """Every setting there is, in the order of the groups in `Settings` and their fields."""
    kinds = get_type_hints(Settings)
    return tuple(
        found for group in fields(Settings) for found in fields_of(group.name, kinds[group.name])
    )


def setting_field(key: str) -> SettingField:
    """The setting called `group.name`; raises KeyError if there is none."""
    for entry in all_settings():
        if entry.key == key:
            return entry
    raise KeyError(key)
