"""What the offered tools say about their arguments. No torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engine.api import Tool

UNREADABLE = "unreadable_arguments"
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


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
        schema = self._of(tool).get(argument)
        if not isinstance(schema, dict):
            return False
        values = schema.get("enum")
        if "type" not in schema and isinstance(values, list) and values:
            return all(isinstance(value, str) for value in values)
        return schema.get("type") in ("string", ["string"])

    def json_of(self, tool: str, argument: str, text: str) -> str:
        """A whole value as JSON."""
        if not self.is_string(tool, argument):
            try:
                return json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False)
            except (ValueError, RecursionError):
                word = text.strip()
                if word in _PYTHON_WORDS:
                    return _PYTHON_WORDS[word]
        return json.dumps(text, ensure_ascii=False)

    def _of(self, tool: str) -> dict[str, Any]:
        """The schemas of a tool's arguments by their names; none for what is no tool."""
        known = self._properties.get(tool)
        if known is None:
            schema = read_object(self._tools[tool].parameters) if tool in self._tools else {}
            properties = schema.get("properties")
            known = properties if isinstance(properties, dict) else {}
            self._properties[tool] = known
        return known


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
