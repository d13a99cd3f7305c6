"""Reads a file that should be text, in whatever encoding: what is certain first, then what is likely. Pure; no Qt."""

from __future__ import annotations

import codecs
import re

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Longer marks first: that of UTF-16 begins that of UTF-32."""
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROLS = 0.01
_SAMPLE_CHARS = 65536


def decode(data: bytes) -> str | None:
    """The text with line ends as "\\n"; None if it is none that anybody could read."""
    text = _decode(data)
    if text is None or _looks_binary(text):
        return None
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def _decode(data: bytes) -> str | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _try(data, encoding)
    if (text := _try(data, "utf-8")) is not None and "\0" not in text:
        return text
    if (guess := _utf16_without_mark(data)) is not None:
        return _try(data, guess)
    if b"\0" in data:
        return None
    return _try(data, "cp1252") or data.decode("latin-1")


def _try(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _utf16_without_mark(data: bytes) -> str | None:
    """Western text in UTF-16 has a zero in nearly every second byte, and always the same one."""
    sample = data[:4096]
    half = len(sample) // 2
    if half < 2:
        return None
    even, odd = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if odd > 0.7 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.7 and odd < 0.1 else None


def _looks_binary(text: str) -> bool:
    sample = text[:_SAMPLE_CHARS]
    return len(_CONTROLS.findall(sample)) > max(1, len(sample) * _MOST_CONTROLS)
