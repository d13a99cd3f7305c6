"""Every setting of Layby, in groups: one frozen dataclass and one settings page each.

A setting is one field here; its flag, its LAYBY_ variable, its line in the settings file and its
widget follow from it. Plain values, no Qt; `services.settings_service` merges their sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any, get_type_hints

from engine.api import Device, LoadOptions
from studio.models.server_settings import ServerSettings
from studio.models.setting_field import (
    AppliesAt,
    SettingField,
    SettingInfo,
    SettingValue,
    about,
    fields_of,
)


class Theme(Enum):
    """Which colours the window has."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class LogLevel(Enum):
    """How much is logged; the values are the names that `logging` knows, in small letters."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """The model and how it is loaded."""

    model: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="Model",
                help="a path or a name in the library; the window loads it when it starts",
                env="LAYBY_MODEL",
                flags=("--model", "-m"),
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    ctx_size: int = field(
        default=0,
        metadata=about(
            SettingInfo(
                title="Pool size",
                help="tokens in the pool that all requests share; 0: what memory allows",
                env="LAYBY_CTX_SIZE",
                flags=("--ctx-size", "-c"),
                low=0,
                high=1 << 31,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    parallel: int = field(
        default=4,
        metadata=about(
            SettingInfo(
                title="Requests at once",
                help="most requests that run at once; further ones wait in line",
                env="LAYBY_PARALLEL",
                flags=("--parallel", "-np"),
                low=1,
                high=256,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    batch_size: int = field(
        default=256,
        metadata=about(
            SettingInfo(
                title="Tokens per step",
                help="most tokens computed in one step; long prompts are read in pieces of this",
                env="LAYBY_BATCH_SIZE",
                flags=("--batch-size", "-b"),
                low=16,
                high=8192,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    threads: int = field(
        default=0,
        metadata=about(
            SettingInfo(
                title="Threads",
                help="CPU threads for the kernels; 0: one per physical core",
                env="LAYBY_THREADS",
                flags=("--threads",),
                low=0,
                high=1024,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    device: Device = field(
        default=Device.AUTO,
        metadata=about(
            SettingInfo(
                title="Device",
                help="where the model runs; auto picks the fastest that is there",
                env="LAYBY_DEVICE",
                flags=("--device",),
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )
    seed: int | None = field(
        default=None,
        metadata=about(
            SettingInfo(
                title="Seed",
                help="seed for requests that name none; empty draws one for each",
                env="LAYBY_SEED",
                flags=("--seed",),
                low=-(1 << 63),
                high=(1 << 64) - 1,
                applies=AppliesAt.NEXT_LOAD,
            )
        ),
    )

    def load_options(self) -> LoadOptions:
        """These settings as the engine takes them."""
        return LoadOptions(
            pool_tokens=self.ctx_size,
            parallel=self.parallel,
            batch_tokens=self.batch_size,
            threads=self.threads,
            device=self.device,
            seed=self.seed,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServerSettings:
    """The local server."""

    is_enabled: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Local server",
                help="start the server together with the window",
                env="LAYBY_SERVER",
            )
        ),
    )
    host: str = field(
        default="127.0.0.1",
        metadata=about(
            SettingInfo(
                title="Address",
                help="address to listen on; 127.0.0.1 is reached from this machine only",
                env="LAYBY_HOST",
                flags=("--host",),
                applies=AppliesAt.SERVER_START,
            )
        ),
    )
    port: int = field(
        default=8484,
        metadata=about(
            SettingInfo(
                title="Port",
                help="port to listen on; 0: a free one",
                env="LAYBY_PORT",
                flags=("--port",),
                low=0,
                high=65535,
                applies=AppliesAt.SERVER_START,
            )
        ),
    )
    api_key: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="API key",
                help="key that programs have to send; empty asks for none",
                env="LAYBY_API_KEY",
                flags=("--api-key",),
                applies=AppliesAt.SERVER_START,
                is_secret=True,
            )
        ),
    )

    def server_settings(self) -> ServerSettings:
        """These settings as the server takes them."""
        return ServerSettings(host=self.host, port=self.port, api_key=self.api_key or None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppearanceSettings:
    """How the window looks."""

    theme: Theme = field(
        default=Theme.SYSTEM,
        metadata=about(
            SettingInfo(
                title="Theme",
                help="colours of the window; system follows the desktop",
                env="LAYBY_THEME",
            )
        ),
    )
    text_size: int = field(
        default=14,
        metadata=about(
            SettingInfo(
                title="Text size",
                help="size of the text in chats, in pixels",
                env="LAYBY_TEXT_SIZE",
                low=10,
                high=28,
            )
        ),
    )


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
    server: LocalServerSettings = field(default_factory=LocalServerSettings)
    appearance: AppearanceSettings = field(default_factory=AppearanceSettings)
    log: LogSettings = field(default_factory=LogSettings)

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
