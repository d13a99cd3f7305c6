"""The settings of the window: its looks, its language, its keys, what it remembers. Plain values; any thread, no Qt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from studio.models.setting_field import AppliesAt, SettingInfo, about


class Theme(Enum):
    """Which colours the window has."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Language(Enum):
    """Which language the window speaks; the values are the names of its catalogues."""

    SYSTEM = "system"
    ENGLISH = "en"
    GERMAN = "de"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppearanceSettings:
    """How the window looks and speaks."""

    language: Language = field(
        default=Language.SYSTEM,
        metadata=about(
            SettingInfo(
                title="Language",
                help="language of the window, or that of the desktop",
                env="LAYBY_LANGUAGE",
                applies=AppliesAt.PROGRAM_START,
            )
        ),
    )
    theme: Theme = field(
        default=Theme.SYSTEM,
        metadata=about(
            SettingInfo(
                title="Theme",
                help="colours of the window, or those of the desktop",
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
                unit="px",
            )
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowSettings:
    """What the window does with itself, and what it remembers."""

    has_tray_icon: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Icon in the system tray",
                help="closing the window leaves Layby running there; Quit ends it",
                env="LAYBY_TRAY",
            )
        ),
    )
    was_told_of_tray: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Told of the tray",
                help="the user knows that closing the window leaves Layby running",
                env="LAYBY_TOLD_OF_TRAY",
                is_hidden=True,
            )
        ),
    )
    has_sidebar: bool = field(
        default=True,
        metadata=about(
            SettingInfo(
                title="Side bar",
                help="whether the list of chats was shown when the window was closed",
                env="LAYBY_HAS_SIDEBAR",
                is_hidden=True,
            )
        ),
    )
    has_pool_panel: bool = field(
        default=False,
        metadata=about(
            SettingInfo(
                title="Pool panel",
                help="whether the pool panel was shown when the window was closed",
                env="LAYBY_HAS_POOL_PANEL",
                is_hidden=True,
            )
        ),
    )
    recent_commands: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="Recent commands",
                help="what was last chosen in the command palette, the last one first",
                env="LAYBY_RECENT_COMMANDS",
                is_hidden=True,
            )
        ),
    )
    export_folder: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="Folder of exports",
                help="where chats were exported to the last time",
                env="LAYBY_EXPORT_FOLDER",
                is_hidden=True,
            )
        ),
    )
    place: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="Place of the window",
                help="a JSON object: where it stood, and the chats in it",
                env="LAYBY_WINDOW_PLACE",
                is_hidden=True,
            )
        ),
    )
    keys: str = field(
        default="",
        metadata=about(
            SettingInfo(
                title="Changed shortcuts",
                help="a JSON object of lists of keys, by command",
                env="LAYBY_KEYS",
                is_hidden=True,
            )
        ),
    )


def read_keys(text: str) -> dict[str, tuple[str, ...]]:
    """The changed shortcuts by command, from the setting's text; what is no such thing is left out."""
    try:
        data = json.loads(text) if text else {}
    except ValueError:
        return {}
    if not isinstance(data, dict):
        return {}
    return {
        command: tuple(keys)
        for command, keys in data.items()
        if isinstance(keys, list) and all(isinstance(one, str) for one in keys)
    }


def write_keys(changes: Mapping[str, tuple[str, ...]]) -> str:
    """The text that `read_keys` reads; empty for no changes."""
    ordered = {command: list(changes[command]) for command in sorted(changes)}
    return json.dumps(ordered, ensure_ascii=False) if ordered else ""
