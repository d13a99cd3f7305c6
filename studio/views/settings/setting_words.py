"""What the settings dialog says about a setting beside its own words: where it comes from, when it counts. GUI thread.

Pure functions. Must not import widgets.
"""

from __future__ import annotations

from enum import Enum
from typing import assert_never

from engine.api import Device
from studio.models.park_settings import ParkPolicy
from studio.models.setting_field import AppliesAt, SettingField, SettingInfo, SettingValue
from studio.models.window_settings import Language, Theme
from studio.services.settings_service import SettingSource
from studio.views.words import count, tr

_CHOICES: dict[Enum, str] = {
    ParkPolicy.FCFS: "The newest; the oldest returns first",
    ParkPolicy.COST: "The smallest that makes enough room",
    ParkPolicy.SMALLEST: "The one with the fewest tokens",
    ParkPolicy.LARGEST: "The one with the most tokens",
    ParkPolicy.YOUNGEST: "The newest; the longest parked returns first",
    ParkPolicy.OLDEST: "The oldest",
    Theme.SYSTEM: "As the desktop",
    Theme.LIGHT: "Light",
    Theme.DARK: "Dark",
    Language.SYSTEM: "As the desktop",
    Language.ENGLISH: "English",
    Language.GERMAN: "Deutsch",
    Device.AUTO: "The fastest there is",
    Device.CPU: "Processor",
    Device.CUDA: "Graphics card (CUDA)",
    Device.MPS: "Graphics (Apple)",
}


def choice_words(choice: Enum) -> str:
    """A choice as the list shows it."""
    return tr(_CHOICES.get(choice, str(choice.value).capitalize()))


def value_words(declared: SettingField, value: SettingValue) -> str:
    """A value that is a number or a choice, as its field shows it."""
    if isinstance(value, Enum):
        return choice_words(value)
    if not isinstance(value, int):
        return str(value)
    if declared.info.lowest and value == declared.info.low:
        return tr(declared.info.lowest)
    return f"{count(value)} {tr(declared.info.unit)}" if declared.info.unit else count(value)


def help_words(info: SettingInfo) -> str:
    """What the setting does, as a sentence."""
    text = tr(info.help)
    return f"{text[:1].upper()}{text[1:]}."


def source_words(info: SettingInfo, source: SettingSource) -> str:
    """Why the value cannot be changed here; empty if it can."""
    match source:
        case SettingSource.FLAG:
            name = info.flags[0] if info.flags else info.title
            text = tr("Set by {name} when Layby was started, so it cannot be changed here.")
            return text.format(name=name)
        case SettingSource.ENVIRONMENT:
            names = tr(" or ").join((info.env, *info.env_aliases))
            text = tr("Set by the environment variable {name}, so it cannot be changed here.")
            return text.format(name=names)
        case SettingSource.FILE | SettingSource.DEFAULT:
            return ""
    assert_never(source)


def applies_words(applies: AppliesAt) -> str:
    """When a change counts; empty for at once."""
    match applies:
        case AppliesAt.NOW:
            return ""
        case AppliesAt.NEXT_LOAD:
            return tr("Counts from the next time a model is loaded.")
        case AppliesAt.SERVER_START:
            return tr("Counts from the next start of the server.")
        case AppliesAt.PROGRAM_START:
            return tr("Counts from the next start of Layby.")
    assert_never(applies)
