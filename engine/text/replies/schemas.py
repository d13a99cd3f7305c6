"""What the offered tools say about their arguments. No torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engine.api import Tool

UNREADABLE = "unreadable_arguments"
_PYTHON_WORDS = {"True": True, "False": False, "None": None}


class Schemas:
    """Of one chat's tools; each is read when it is first asked about."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._properties: dict[str, dict[str, Any]] = {}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._tools)

    def is_string(self, tool: str, argument: str) -> bool:
        """Whether nothing but a string may be given."""
        return _is_string(self.of(tool, argument))

    def json_of(self, tool: str, argument: str, text: str) -> str:
        """A whole value as JSON."""
        return json.dumps(json_value(self.of(tool, argument), text), ensure_ascii=False)

    def of(self, tool: str, argument: str) -> dict[str, Any]:
        """What an argument may be; an empty schema where nothing is said."""
        schema = self._of(tool).get(argument)
        return schema if isinstance(schema, dict) else {}

    def _of(self, tool: str) -> dict[str, Any]:
        """The schemas of a tool's arguments by their names; none for what is no tool."""
        known = self._properties.get(tool)
        if known is None:
            schema = read_object(self._tools[tool].parameters) if tool in self._tools else {}
            properties = schema.get("properties")
            known = properties if isinstance(properties, dict) else {}
            self._properties[tool] = known
        return known


def json_value(schema: dict[str, Any], text: str) -> object:
    """What a value means that was written without quotes: JSON where it is that, unless it must be a string."""
    if _is_string(schema):
        return text
    try:
        found = json.loads(text)
        json.dumps(found, allow_nan=False)
    except (ValueError, RecursionError):
        return _PYTHON_WORDS.get(text.strip(), text)
    return found


def _is_string(schema: dict[str, Any]) -> bool:
    values = schema.get("enum")
    if "type" not in schema and isinstance(values, list) and values:
        return all(isinstance(value, str) for value in values)
    return schema.get("type") in ("string", ["string"])


def read_object(text: str) -> dict[str, Any]:
    """A JSON object; an empty one for a text that is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_arguments(text: str) -> dict[str, Any]:
    """A call's arguments for a template that wants an object, as most do.

    What is none, as of a call that was cut off, is shown whole under `UNREADABLE`: with nothing in its place the model
    would read the complaint that came back and not see what it is about. Null is how some write that there are none.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = text
    if isinstance(found, dict):
        return found
    return {} if found is None else {UNREADABLE: text}
