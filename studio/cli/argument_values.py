"""Turns the texts of flags into values, with argparse's kind of error. Loads neither Qt nor torch."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from studio.bench.plan import PART_NAMES, ModelWish
from studio.models.errors import SettingError
from studio.models.setting_field import SettingField, SettingKind, SettingValue
from studio.models.settings import setting_field


@dataclass(frozen=True, slots=True)
class Reader:
    """Turns a flag's text into the setting's value, with argparse's kind of error."""

    entry: SettingField

    def __call__(self, text: str) -> SettingValue:
        try:
            return self.entry.parse(text, source="the value")
        except SettingError as error:
            raise argparse.ArgumentTypeError(str(error)) from error


class Agreeing(argparse.Action):
    """Stores the value; a second flag for it must say the same."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest, values)
        if before is not values:
            raise argparse.ArgumentError(
                self,
                f"{_word(values)} after {_word(before)}; there is one value for all of these flags",
            )
        setattr(namespace, self.dest, values)


def _word(value: object) -> object:
    return value.value if isinstance(value, Enum) else value


def arguments_of(flags: Mapping[str, SettingValue]) -> list[str]:
    """The arguments that give these settings, by key: what the parser reads out of a command line, the other way."""
    arguments = []
    for key, value in flags.items():
        declared = setting_field(key)
        flag = declared.info.flags[0]
        if declared.kind is SettingKind.SWITCH:
            arguments.append(flag if value else f"--no-{flag.removeprefix('--')}")
        else:
            arguments.append(f"{flag}={'' if value is None else _word(value)}")
    return arguments


@dataclass(frozen=True, slots=True)
class Names:
    """Turns "a,b" or "all" into names that are allowed."""

    allowed: tuple[str, ...]

    def __call__(self, text: str) -> tuple[str, ...]:
        if text == "all":
            return self.allowed
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        for name in names:
            if name not in self.allowed:
                raise argparse.ArgumentTypeError(
                    f"{name!r} is unknown; give all, or some of {', '.join(self.allowed)}"
                )
        return names


def read_model_wish(text: str) -> ModelWish:
    """`MODEL` or `MODEL=PART,...`; what is a file as it stands is all of it the model."""
    name, sign, parts = text.rpartition("=")
    if not sign or not name or Path(text).exists():
        return ModelWish(text)
    return ModelWish(name, Names(PART_NAMES)(parts))


def positive(text: str) -> int:
    """A whole number from 1 on."""
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 to 10000")
    return int(text)


def read_opponent(text: str) -> Path:
    """The file of `llama-server=PATH`."""
    name, _, path = text.partition("=")
    if name != "llama-server" or not path:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no program to compare with; write llama-server=PATH"
        )
    if not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {path}")
    return Path(path)


def metavar_of(entry: SettingField) -> str:
    """What stands for a setting's value in the help."""
    if entry.choices is not None:
        return "|".join(str(choice.value) for choice in entry.choices)
    return entry.name.upper()
