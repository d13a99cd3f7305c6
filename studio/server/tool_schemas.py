"""What the OpenAPI document says of fields that are read by functions of their own: messages, tools and calls.

Any thread; no web framework.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}


def _or_null(*schemas: Schema) -> Schema:
    return {"anyOf": [*schemas, {"type": "null"}]}


def _function(required: list[str], **properties: Schema) -> Schema:
    """`{"type": "function", "function": {…}}`"""
    function = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "object",
        "properties": {"type": {"const": "function"}, "function": function},
        "required": ["type", "function"],
    }


TOOLS = _or_null(
    {
        "type": "array",
        "items": _function(
            ["name"],
            name={"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$"},
            description=_or_null(_TEXT),
            parameters=_or_null(_OBJECT),
            strict=_or_null({"type": "boolean"}),
        ),
    }
)
_ALLOWED_TOOLS: Schema = {
    "type": "object",
    "properties": {
        "type": {"const": "allowed_tools"},
        "allowed_tools": {
            "type": "object",
            "properties": {
                "mode": {"enum": ["auto", "required"]},
                "tools": {"type": "array", "items": _function(["name"], name=_TEXT), "minItems": 1},
            },
            "required": ["mode", "tools"],
        },
    },
    "required": ["type", "allowed_tools"],
}
TOOL_CHOICE = _or_null(
    {"enum": ["none", "auto", "required"]}, _function(["name"], name=_TEXT), _ALLOWED_TOOLS
)
CALLS = _or_null({"type": "array", "items": _function(["name"], name=_TEXT, arguments=_TEXT)})
CONTENT = _or_null(
    _TEXT,
    {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"type": {"const": "text"}, "text": _TEXT},
            "required": ["type", "text"],
        },
    },
)
