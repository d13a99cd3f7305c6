"""What the offered tools say about their arguments. Immutable, any thread. No torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from engine.api import Tool

_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


class Schemas:
    """What the tools say about their arguments."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._properties: dict[str, dict[str, Any]] = {}
        for tool in tools:
            schema = json.loads(tool.parameters)
            properties = schema.get("properties") if isinstance(schema, dict) else None
            self._properties[tool.name] = properties if isinstance(properties, dict) else {}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._properties)

    def is_string(self, tool: str, argument: str) -> bool:
        """Whether nothing but a string may be given."""
        schema = self._properties.get(tool, {}).get(argument)
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
