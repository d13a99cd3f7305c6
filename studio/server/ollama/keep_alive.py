"""`keep_alive`: how long a model is to stay loaded after a request, as Ollama's clients say it. Any thread.

Source of the notation: durations of Go, such as "1h30m"; a number is seconds. Below 0 is without end: for as long as
the user has set.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from studio.server.wire import wrong_value

_UNITS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d{1,15}(?:\.\d{0,15})?)(ns|us|\u00b5s|ms|s|m|h)"
_DURATION = re.compile(rf"([+-]?)((?:{_PART})+)")
_PLAIN = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")


def _read(value: object) -> float | None:
    """Seconds; None where nothing is said, and for no end."""
    if value is None:
        return None
    if isinstance(value, str):
        seconds = _seconds_of(value)
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        seconds = float(value)
    else:
        raise _wrong(value)
    return None if seconds < 0 else seconds


def _seconds_of(text: str) -> float:
    if _PLAIN.fullmatch(text):
        return float(text)
    found = _DURATION.fullmatch(text)
    if found is None:
        raise _wrong(text)
    seconds = math.fsum(
        float(number) * _UNITS[unit] for number, unit in re.findall(_PART, found[2])
    )
    return -seconds if found[1] == "-" else seconds


def _wrong(value: object) -> ValueError:
    return wrong_value(
        f'is {value!r:.40}, which is no duration; send seconds, or a text like "5m" or "1h30m"'
    )


_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "number"},
        {"type": "string", "pattern": "^[+-]?([0-9]{1,9}(ns|us|ms|s|m|h))+$"},
        {"type": "null"},
    ]
}
KeepAlive = Annotated[float | None, PlainValidator(_read), WithJsonSchema(_SCHEMA)]
