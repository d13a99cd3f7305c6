"""Reads a model's hyper-parameters with their types and bounds checked; no torch. Used by the thread that loads.

Every value of a file is a stranger's: each is checked before anything is computed from it, and an error names the key,
the value and what is allowed.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping

from engine.errors import CorruptModel
from engine.formats.mapped_file import shorten

_REMEDY = "the file is damaged or no model of this kind; download it again"


class Fields:
    """Typed access to a file's metadata. A key that is absent or null counts as missing.

    Every method raises CorruptModel when the value has the wrong type or is out of bounds, or when a key without a
    default is missing.
    """

    def __init__(self, values: Mapping[str, object], prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix

    def has(self, key: str) -> bool:
        return self._values.get(self._prefix + key) is not None

    def raw(self, key: str) -> object:
        """The value as it stands, None when missing."""
        return self._values.get(self._prefix + key)

    def integer(self, key: str, low: int, high: int, *, default: int | None = None) -> int:
        """A whole number in [low, high]. A list of equal numbers (one for each layer) counts as one."""
        value = self._present(key, default)
        if (
            isinstance(value, list | tuple | array)
            and value
            and value.count(value[0]) == len(value)
        ):
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, "must be a whole number")
        if not low <= value <= high:
            raise self.wrong(key, f"must be {low} to {high}")
        return value

    def number(self, key: str, low: float, high: float, *, default: float | None = None) -> float:
        """A finite number in [low, high]."""
        value = self._present(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, "must be a number")
        if not low <= value <= high:  # also false for NaN, and exact for huge integers
            raise self.wrong(key, f"must be {low:g} to {high:g}")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._present(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "must be true or false")
        return value

    def text(self, key: str, *, default: str | None = None) -> str:
        value = self._present(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "must be text")
        return value

    def table(self, key: str) -> Fields:
        """A nested mapping; empty when missing."""
        value = self._present(key, {})
        if not isinstance(value, Mapping):
            raise self.wrong(key, "must be a table of values")
        return Fields(value)

    def wrong(self, key: str, rule: str) -> CorruptModel:
        """The error for a value that breaks `rule`."""
        value = self.raw(key)
        return CorruptModel(f"{self._prefix}{key} is {shorten(value)}, it {rule}; {_REMEDY}")

    def _present(self, key: str, default: object) -> object:
        value = self.raw(key)
        if value is None:
            if default is None:
                raise CorruptModel(f"{self._prefix}{key} is missing; {_REMEDY}")
            return default
        return value


def is_finite_positive(values: list[float]) -> bool:
    """Whether all are above 0 and below infinity."""
    return all(0 < value < math.inf for value in values)
