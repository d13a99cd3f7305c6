"""How one setting is declared and checked: a dataclass field that knows its words, bounds, flag and variable.

A settings group is a frozen dataclass whose fields are made by `setting(...)`. The settings pages, the command line, the
environment and the settings file are all read from these declarations. Standard library only; any thread.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
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
    flags: tuple[str, ...] = ()
    """Names on the command line, the long one first; empty where there is none."""
    low: int | None = None
    high: int | None = None
    applies: AppliesAt = AppliesAt.NOW
    is_secret: bool = False
    """Never shown or logged in full."""


def setting(default: SettingValue, info: SettingInfo) -> Any:
    """A dataclass field with this default and description."""
    return field(default=default, metadata={_METADATA_KEY: info})


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
        """The value that `text` means; `source` (a flag or variable) is named in the SettingError raised if none."""
        text = text.strip()
        if self.is_optional and not text:
            return None
        if self.kind is SettingKind.SWITCH:
            return self._parse_switch(text.lower(), source)
        if self.kind is SettingKind.INTEGER:
            try:
                return self.check(int(text), source=source)
            except ValueError:
                raise SettingError(
                    f"{source} is {text!r}; give a whole number{self._bounds()}"
                ) from None
        return self.check(text, source=source)

    def check(self, value: object, *, source: str) -> SettingValue:
        """`value`, a choice given by its text turned into the choice; raises SettingError if it is not allowed."""
        if value is None and self.is_optional:
            return None
        if self.choices is not None:
            return self._check_choice(value, source)
        if (
            self.kind is SettingKind.INTEGER
            and isinstance(value, int)
            and not isinstance(value, bool)
        ):
            low, high = self.info.low, self.info.high
            if (low is None or value >= low) and (high is None or value <= high):
                return value
        if self.kind is SettingKind.SWITCH and isinstance(value, bool):
            return value
        if self.kind is SettingKind.TEXT and isinstance(value, str):
            return value
        shown = "the value given" if self.info.is_secret else repr(value)
        raise SettingError(f"{source} is {shown}; allowed is {self.kind.value}{self._bounds()}")

    def _parse_switch(self, word: str, source: str) -> bool:
        if word in _WORDS_FOR_TRUE:
            return True
        if word in _WORDS_FOR_FALSE:
            return False
        raise SettingError(
            f"{source} is {word!r}; allowed is 1 or 0, on or off, yes or no, true or false"
        )

    def _check_choice(self, value: object, source: str) -> Enum:
        assert self.choices is not None
        for choice in self.choices:
            if value is choice or (isinstance(value, str) and value.lower() == choice.value):
                return choice
        allowed = ", ".join(str(choice.value) for choice in self.choices)
        raise SettingError(f"{source} is {value!r}; allowed is one of {allowed}")

    def _bounds(self) -> str:
        if self.info.low is None or self.info.high is None:
            return ""
        return f" from {self.info.low:,} to {self.info.high:,}"


def fields_of(group: str, kind: type[Any]) -> tuple[SettingField, ...]:
    """Every setting of a group's dataclass, in the order they are declared."""
    hints = get_type_hints(kind)
    return tuple(
        _describe(
            group, entry.name, hints[entry.name], entry.default, entry.metadata[_METADATA_KEY]
        )
        for entry in fields(kind)
    )


def _describe(group: str, name: str, hint: Any, default: Any, info: SettingInfo) -> SettingField:
    assert default is not MISSING, f"{group}.{name} has no default"
    types = [part for part in (get_args(hint) or (hint,)) if part is not type(None)]
    (base,) = types
    kinds = {bool: SettingKind.SWITCH, int: SettingKind.INTEGER, str: SettingKind.TEXT}
    return SettingField(
        group=group,
        name=name,
        kind=kinds.get(base, SettingKind.CHOICE),
        default=default,
        info=info,
        choices=base if issubclass(base, Enum) else None,
        is_optional=type(None) in get_args(hint),
    )
