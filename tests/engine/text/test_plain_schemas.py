"""Schemas that are plain take little; everything that may take more is none of them."""

from __future__ import annotations

import json

import pytest

from engine.text.plain_schemas import MAX_CHARS, is_plain

PERSON = {
    "title": "Person",
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "maxLength": 12, "format": "date"},
        "age": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
        "friend": {"$ref": "#/$defs/friend"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
    "$defs": {"friend": {"type": "object", "properties": {"multipleOf": True}}},
}


@pytest.mark.parametrize("schema", [{}, True, PERSON, {"additionalProperties": {"type": "string"}}])
def test_what_programs_mostly_ask_for_is_plain(schema: object) -> None:
    assert is_plain(json.dumps(schema))


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "a"},
        {"multipleOf": 999983},
        {"allOf": [{}]},
        {"patternProperties": {}},
        {"unheard": 1},
        {"properties": {"a": {"pattern": "a"}}},
        {"items": {"allOf": []}},
        {"anyOf": [{"multipleOf": 2}]},
        {"$defs": {"a": {"pattern": "a"}}},
        {"properties": []},
        {"anyOf": {}},
        {"items": []},
        [],
        5,
    ],
)
def test_regular_expressions_multiples_and_conjunctions_are_not(schema: object) -> None:
    assert not is_plain(json.dumps(schema))


def test_what_is_long_or_no_json_is_not() -> None:
    assert is_plain(json.dumps({"title": "x" * (MAX_CHARS - 20)}))
    assert not is_plain(json.dumps({"title": "x" * MAX_CHARS}))
    assert not is_plain("{")
    assert not is_plain("[" * 10_000)
