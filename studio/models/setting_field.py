"""How one setting is declared and checked: a dataclass field with its words, bounds and names.

A settings group is a frozen dataclass whose fields have `metadata=about(...)`. The settings pages,
the command line, the environment and the settings file are all read from these declarations.
Standard library only; any thread.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, fields
from enum import Enum
from typing import Any, get_args, get_type_hints

from studio.models.errors import SettingError

SettingValue = str | int | bool | Enum | None

_WORDS_FOR_TRUE = frozenset({"1", "true", "yes", "on"})
_WORDS_FOR_FALSE = frozenset({"0", "false", "no", "off"})
_METADATA_KEY = "setting"


class AppliesAt(Enum):
    """When a change takes effect."""

    NOW = "now"
    NEXT_LOAD = "next_load"
    """When a model is loaded the next time."""
    SERVER_START = "server_start"
    PROGRAM_START = "program_start"


class SettingKind(Enum):
    """What a setting's value is, and so which widget edits it."""

    TEXT = "text"
    INTEGER = "integer"
    SWITCH = "switch"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInfo:
    """The words, bounds and outside names of one setting."""

    title: str
    help: str
    env: str
    """Name of the environment variable."""
    env_aliases: tuple[str, ...] = ()
    """Variables of other programs that mean the same; `env` wins."""
    flags: tuple[str, ...] = ()
    """Names on the command line, the long one first; empty where there is none. A switch's has its `--no-` too."""
    flags_agree: bool = False
    """Several flags may be given for the one value, but not with different ones."""
    low: int | None = None
    high: int | None = None
    least: int | None = None
    """The smallest number beside 0, which leaves the choice to Layby."""
    step: int = 1
    """A number is a multiple of this."""
    names: tuple[str, ...] = ()
    """The texts that are allowed; empty: any."""
    unit: str = ""
    """What a number counts, where it is shown with it."""
    lowest: str = ""
    """What the lowest number is called where it stands for something else, as 0 does for never."""
    applies: AppliesAt = AppliesAt.NOW
    is_secret: bool = False
    """Never shown or logged in full."""
    is_hidden: bool = False
    """For tests, or kept by the window itself: on no settings page and in no `--help`."""


def about(info: SettingInfo) -> dict[str, SettingInfo]:
    """The `metadata` that makes a dataclass field a setting."""
    return {_METADATA_KEY: info}


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingField:
    """One setting as pages, command line and file see it."""

    group: str
    name: str
    kind: SettingKind
    default: SettingValue
    info: SettingInfo
    choices: type[Enum] | None = None
    is_optional: bool = False
    """None is a value (empty text where it is written as text)."""

    @property
    def key(self) -> str:
        """`group.name`, as `Settings.with_value` and the settings file know it."""
        return f"{self.group}.{self.name}"

    def parse(self, text: str, *, source: str) -> SettingValue:
        """The value that `text` means.

        Raises SettingError, naming `source` (a flag or variable), if it means none.
        """
        text = text.strip()
        if self.is_optional and not text:
            return None
        if self.kind is SettingKind.SWITCH:
            return self._parse_switch(text.lower(), source)
        if self.kind is SettingKind.INTEGER:
            try:
                number = int(text)
            except ValueError:
                raise SettingError(
                    f"{source} is {text!r}; give a whole number{self._bounds()}"
                ) from None
            return self.check(number, source=source)
        return self.check(text, source=source)

    def check(self, value: object, *, source: str) -> SettingValue:
        """`value` itself, or the choice whose text it is. Raises SettingError if not allowed."""
        if value is None and self.is_optional:
            return None
        if self.choices is not None:
            return self._check_choice(self.choices, value, source)
        if self.kind is SettingKind.INTEGER and type(value) is int and self._is_within(value):
            return value
        if self.kind is SettingKind.SWITCH and isinstance(value, bool):
            return value
        if self.kind is SettingKind.TEXT and isinstance(value, str):
            if self.info.names and value not in self.info.names:
                raise SettingError(
                    f"{source} is {value!r}; give one of {', '.join(self.info.names)}"
                )
            return value
        shown = "a value" if self.info.is_secret else repr(value)
        raise SettingError(f"{source} is {shown}; give {_ARTICLES[self.kind]}{self._bounds()}")

    def _parse_switch(self, word: str, source: str) -> bool:
        if word in _WORDS_FOR_TRUE:
            return True
        if word in _WORDS_FOR_FALSE:
            return False
        raise SettingError(f"{source} is {word!r}; give on or off")

    def _check_choice(self, choices: type[Enum], value: object, source: str) -> Enum:
        for choice in choices:
            if value is choice or (isinstance(value, str) and value.lower() == choice.value):
                return choice
        allowed = ", ".join(str(choice.value) for choice in choices)
        raise SettingError(f"{source} is {value!r}; give one of {allowed}")

    def _is_within(self, value: int) -> bool:
        low, high, least = self.info.low, self.info.high, self.info.least
        if value % self.info.step or (value and least is not None and value < least):
            return False
        return (low is None or value >= low) and (high is None or value <= high)

    def _bounds(self) -> str:
        if self.info.low is None or self.info.high is None:
            return ""
        if self.info.least is not None:
            return f" from {self.info.least} to {self.info.high}, or 0"
        multiple = f", a multiple of {self.info.step}" if self.info.step > 1 else ""
        return f" from {self.info.low} to {self.info.high}{multiple}"


_ARTICLES = {
    SettingKind.TEXT: "text",
    SettingKind.INTEGER: "a whole number",
    SettingKind.SWITCH: "true or false",
    SettingKind.CHOICE: "a choice",
}


def fields_of(group: str, kind: type[Any]) -> tuple[SettingField, ...]:
    """Every setting of a group's dataclass, in the order they are declared."""
    hints = get_type_hints(kind)
    return tuple(_read(group, entry, hints[entry.name]) for entry in fields(kind))


def _read(group: str, entry: Field[Any], hint: Any) -> SettingField:
    types = get_args(hint) or (hint,)
    base = next(kind for kind in types if kind is not type(None))
    is_choice = issubclass(base, Enum)
    plain_kinds = {bool: SettingKind.SWITCH, int: SettingKind.INTEGER, str: SettingKind.TEXT}
    return SettingField(
        group=group,
        name=entry.name,
        kind=SettingKind.CHOICE if is_choice else plain_kinds[base],
        default=entry.default,
        info=entry.metadata[_METADATA_KEY],
        choices=base if is_choice else None,
        is_optional=type(None) in types,
    )
