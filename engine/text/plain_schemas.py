"""JSON schemas of which it is known that following them costs little, whatever they say. Pure; any thread."""

from __future__ import annotations

import json
from typing import Any

MAX_CHARS = 1 << 14
"""The costliest of this length that was found took 0.4 s to prepare."""

_VALUES = frozenset(
    {
        "type", "enum", "const", "required", "format", "minItems", "maxItems", "minLength", "maxLength", "minimum",
        "maximum", "exclusiveMinimum", "exclusiveMaximum", "$ref", "title", "description", "default", "examples",
        "nullable", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment", "strict",
    }
)  # fmt: skip
_SCHEMAS = frozenset({"items", "additionalProperties", "additionalItems"})
_LISTS = frozenset({"anyOf", "oneOf", "prefixItems"})
_BY_NAME = frozenset({"properties", "$defs", "definitions"})


def is_plain(source: str) -> bool:
    """Whether a schema, as JSON text, is short and without regular expressions, multiples and conjunctions."""
    if len(source) > MAX_CHARS:
        return False
    try:
        return _is_plain(json.loads(source))
    except (ValueError, RecursionError):
        return False


def _is_plain(schema: Any) -> bool:
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    return all(_is_plain_part(key, value) for key, value in schema.items())


def _is_plain_part(key: str, value: Any) -> bool:
    if key in _VALUES:
        return True
    if key in _SCHEMAS:
        return _is_plain(value)
    if key in _LISTS:
        return isinstance(value, list) and all(map(_is_plain, value))
    return key in _BY_NAME and isinstance(value, dict) and all(map(_is_plain, value.values()))
