"""JSON schema in a few words, for people. Pure; any thread."""

from __future__ import annotations

import json
from typing import Any

from studio.server.wire import NOT_SERVED

_MOST_VALUES = 8


def fields_of(schema: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name, kind and description of each property of an object: required ones first and marked, idle ones last."""
    required = set(schema.get("required", ()))

    def rank(item: tuple[str, dict[str, Any]]) -> tuple[bool, bool]:
        return item[0] not in required, item[1].get("description") == NOT_SERVED

    return [
        (name + ("*" if name in required else ""), words_of(each), each.get("description", ""))
        for name, each in sorted(schema.get("properties", {}).items(), key=rank)
    ]


def words_of(schema: dict[str, Any]) -> str:
    """Like "integer 0 to 20, or null"."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        values = [json.dumps(value) for value in schema["enum"]]
        more = " …" if len(values) > _MOST_VALUES else ""
        return " | ".join(values[:_MOST_VALUES]) + more
    for kind in ("anyOf", "oneOf"):
        if kind in schema:
            return ", or ".join(dict.fromkeys(words_of(each) for each in schema[kind]))
    kinds = schema.get("type", "anything")
    kinds = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if kinds == "array" and "items" in schema:
        return f"list of {words_of(schema['items'])}"
    return f"{kinds}{_bounds(schema)}"


def _bounds(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return ""
    if high is None:
        return f" {low} and more"
    return f" {low} to {high}" if low is not None else f" up to {high}"
