"""Schemas reach the library as they are, but for formats it does not know and counts it would get wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.text.json_schemas import SchemaRefused, prepared_schema


def prepared(schema: Any) -> Any:
    """What becomes of a schema, without what is said of the space in it."""
    found = prepared_schema(json.dumps(schema))
    guidance = found.pop("x-guidance")
    assert guidance == {"whitespace_pattern": r" |\n[ \t]{0,24}"}
    return found


def test_what_a_client_says_about_space_holds() -> None:
    asked = {"type": "array", "x-guidance": {"whitespace_flexible": False}}
    assert prepared_schema(json.dumps(asked)) == asked


def test_a_schema_stays_as_it_is_in_its_order() -> None:
    schema = {
        "type": "object",
        "properties": {"format": {"type": "string", "format": "date"}, "a": True},
        "patternProperties": {"^x": {"enum": [{"format": "odd"}]}},
        "required": ["format"],
        "anyOf": [{"const": {"format": "odd"}}, {"items": {"$ref": "#/$defs/x"}}],
        "$defs": {"x": {"prefixItems": [{"minLength": 3}], "additionalProperties": False}},
    }
    assert json.dumps(prepared(schema)) == json.dumps(schema)
    assert prepared(True) == {}


def test_formats_that_nobody_knows_say_nothing() -> None:
    odd = {"type": "string", "format": "int32"}
    schema = {
        "properties": {"a": odd, "b": {"items": odd}, "c": {"anyOf": [odd, {"format": "uuid"}]}},
        "additionalProperties": odd,
        "$defs": {"d": odd},
    }
    plain = {"type": "string"}
    assert prepared(schema) == {
        "properties": {
            "a": plain,
            "b": {"items": plain},
            "c": {"anyOf": [plain, {"format": "uuid"}]},
        },
        "additionalProperties": plain,
        "$defs": {"d": plain},
    }


@pytest.mark.parametrize("required", [[], ["a"], ["a", "b"]])
def test_more_free_names_than_one_cannot_be_asked_for(required: list[str]) -> None:
    schema = {"type": "object", "required": required, "minProperties": len(required) + 1}
    assert prepared(schema) == schema
    schema["minProperties"] = len(required) + 2
    with pytest.raises(SchemaRefused, match=f"name at least {len(required) + 1} in required there"):
        prepared({"items": {"allOf": [schema]}})


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("{", "is no JSON"),
        ("false", "is false, which is no schema"),
        ("[]", "which is no schema"),
        ("[" * 100_000, "is no JSON"),
        ('{"items":' * 2000 + "{}" + "}" * 2000, "is no JSON"),
    ],
    ids=["cut", "false", "a list", "deep", "deep schema"],
)
def test_what_is_no_schema_is_refused(source: str, words: str) -> None:
    with pytest.raises(SchemaRefused, match=words):
        prepared_schema(source)
