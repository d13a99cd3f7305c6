"""A JSON schema as llguidance is to take it, alone or behind `%json` in Lark. Pure; thread of grammars.

The library honours a keyword or refuses it by name. Three things are put right before: space between the parts of JSON
has an end, a format that it does not know says nothing, as JSON Schema has it, and one name cannot count twice for
`minProperties`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

_OF_NAMES = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
"""Keywords with a schema for each name."""
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLE = (
    "items",
    "additionalProperties",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "propertyNames",
)
_FORMATS = frozenset(
    {
        "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri",
    }
)  # fmt: skip
"""Those that the library enforces."""


_SPACE = r" |\n[ \t]{0,24}"
"""Between the parts of JSON: as models write it, and never without end."""


class SchemaRefused(ValueError):
    """What of a schema cannot be followed, or why it is none."""


def prepared_schema(source: str) -> dict[str, Any]:
    """The schema of a JSON text, with what the library is to know besides. Raises SchemaRefused."""
    try:
        schema = json.loads(source)
        if schema is True:
            schema = {}
        if not isinstance(schema, dict):
            raise SchemaRefused(f"is {source[:40]}, which is no schema that a reply can match")
        return prepared(schema)
    except (json.JSONDecodeError, RecursionError) as error:
        raise SchemaRefused(f"is no JSON ({error})") from error


def prepared(schema: dict[str, Any]) -> dict[str, Any]:
    """The same of a schema that has been read. Raises SchemaRefused."""
    return {"x-guidance": {"whitespace_pattern": _SPACE}, **_prepared(schema)}


def _prepared(schema: Any) -> Any:
    if not isinstance(schema, dict):  # true or false, or what the library refuses
        return schema
    _check_counts(schema)
    changed = {
        key: value
        for key, value in schema.items()
        if key != "format" or not isinstance(value, str) or value in _FORMATS
    }
    for key, value in changed.items():
        changed[key] = _within(key)(value)
    return changed


def _within(key: str) -> Callable[[Any], Any]:
    """How the schemas inside a keyword's value are prepared."""
    if key in _OF_NAMES:
        return lambda value: (
            {name: _prepared(each) for name, each in value.items()}
            if isinstance(value, dict)
            else value
        )
    if key in _LISTS:
        return lambda value: [*map(_prepared, value)] if isinstance(value, list) else value
    return _prepared if key in _SINGLE else lambda value: value


def _check_counts(schema: dict[str, Any]) -> None:
    least, required = schema.get("minProperties"), schema.get("required")
    if not isinstance(least, int | float):
        return
    named = len(set(map(str, required))) if isinstance(required, list) else 0
    if least - named > 1:
        raise SchemaRefused(
            f"asks for minProperties {least} with {named} names required, and a name that is free could come twice; "
            f"name at least {least - 1:g} in required there"
        )
