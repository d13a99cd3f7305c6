"""What a reply must match, as clients say it: `response_format`, `json_schema`, `grammar`, `text.format`.

`read_…` take what JSON gave and raise `wrong_value` about it, so that they serve as pydantic validators (the reader of
the body puts the field's name before the message). Whether a grammar is sound, the engine says, with the field's name.
Any thread.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from engine.api import Grammar, GrammarKind
from engine.errors import InvalidRequest
from studio.server.wire import WireModel, wrong_value

_LARK_MARK = "%llguidance"
"""As in llama.cpp: a grammar that begins with it is Lark in the dialect of llguidance, not GBNF."""
_SchemaOf = Callable[[dict[str, Any]], dict[str, Any]]
_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def schema_grammar(schema: dict[str, Any], param: str) -> Grammar:
    """JSON that matches a schema; `param` is the field that it came in."""
    source = json.dumps(schema, ensure_ascii=False)
    return Grammar(kind=GrammarKind.JSON_SCHEMA, source=source, param=param)


def object_grammar(param: str) -> Grammar:
    """Any JSON object."""
    return schema_grammar(_ANY_OBJECT, param)


def read_schema(value: object, param: str) -> Grammar | None:
    """A JSON schema as an object; null and {} ask for nothing."""
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise wrong_value("is no JSON schema; send an object")
    return schema_grammar(value, param)


def read_grammar(value: object, param: str = "grammar") -> Grammar | None:
    """GBNF, or Lark behind `%llguidance`; null and "" ask for nothing."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise wrong_value("is no GBNF grammar; send a string")
    is_lark = value.lstrip().startswith(_LARK_MARK)
    kind = GrammarKind.LARK if is_lark else GrammarKind.GBNF
    return Grammar(kind=kind, source=value, param=param)


def read_response_format(value: object) -> Grammar | None:
    """OpenAI's `response_format` of chat completions, and llama.cpp's `schema` inside it."""
    return _read_format(value, "response_format", _nested_schema)


@dataclass(frozen=True, slots=True)
class AskedFormat:
    """`text.format` as it was asked for, which the response tells again, and what it means."""

    wire: dict[str, Any]
    grammar: Grammar | None


def read_text_format(value: object) -> AskedFormat | None:
    """OpenAI's `text.format` of responses: as `response_format`, with the schema and its name beside the type."""
    grammar = _read_format(value, "text.format", _flat_schema)
    return AskedFormat(value, grammar) if isinstance(value, dict) else None


def _read_format(value: object, param: str, schema_of: _SchemaOf) -> Grammar | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(kind := value.get("type"), str):
        raise wrong_value('is no object with a type, like {"type": "json_object"}')
    match kind:
        case "text":
            return None
        case "json_object":
            schema = value.get("schema")
            return schema_grammar(_schema(schema), param) if schema else object_grammar(param)
        case "json_schema":
            return schema_grammar(schema_of(value), param)
        case _:
            raise wrong_value(
                f"is of the type {kind[:40]!r}, allowed are text, json_object and json_schema"
            )


def _nested_schema(value: dict[str, Any]) -> dict[str, Any]:
    described = value.get("json_schema")
    if described is None and "schema" in value:
        described = value
    if not isinstance(described, dict):
        raise wrong_value('has no json_schema; send {"name": "...", "schema": {...}} as that')
    return _flat_schema(described)


def _flat_schema(described: dict[str, Any]) -> dict[str, Any]:
    name, is_strict = described.get("name"), described.get("strict")
    if name is not None and not isinstance(name, str):
        raise wrong_value("has a schema whose name is no string")
    if is_strict is not None and not isinstance(is_strict, bool):
        raise wrong_value("has a schema whose strict is neither true nor false")
    if "schema" not in described:
        raise wrong_value("has no schema; send the JSON schema that the reply is to match")
    return _schema(described["schema"])


def _schema(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise wrong_value("has a schema that is no object")
    return value


_SCHEMA: dict[str, Any] = {"type": "object", "description": "A JSON schema."}
_NULL: dict[str, Any] = {"type": "null"}
_NAMED_SCHEMA: dict[str, Any] = {
    "schema": _SCHEMA,
    "name": {"type": ["string", "null"]},
    "strict": {"type": ["boolean", "null"]},
}


def _format_document(described: dict[str, Any], required: str) -> dict[str, Any]:
    """What JSON schema says of a field that names a format; `described` is beside the type of a JSON schema."""
    kinds = (
        ({"type": {"const": "text"}}, ["type"]),
        ({"type": {"const": "json_object"}, "schema": {"anyOf": [_SCHEMA, _NULL]}}, ["type"]),
        ({"type": {"const": "json_schema"}, **described}, ["type", required]),
    )
    shapes = [
        {"type": "object", "properties": fields, "required": needed} for fields, needed in kinds
    ]
    return {"anyOf": [*shapes, _NULL]}


ResponseFormat = Annotated[
    Grammar | None,
    PlainValidator(read_response_format),
    WithJsonSchema(
        _format_document(
            {
                "json_schema": {
                    "type": "object",
                    "properties": _NAMED_SCHEMA,
                    "required": ["schema"],
                }
            },
            "json_schema",
        )
    ),
]
TextFormat = Annotated[
    AskedFormat | None,
    PlainValidator(read_text_format),
    WithJsonSchema(_format_document(_NAMED_SCHEMA, "schema")),
]
JsonSchema = Annotated[
    Grammar | None,
    PlainValidator(lambda value: read_schema(value, "json_schema")),
    WithJsonSchema({"anyOf": [_SCHEMA, _NULL]}),
]
GrammarText = Annotated[
    Grammar | None,
    PlainValidator(read_grammar),
    WithJsonSchema({"type": ["string", "null"], "description": "GBNF, or Lark after %llguidance."}),
]


class StructuredFields(WireModel):
    """What OpenAI and llama-server call it, of chat and text completions."""

    response_format: ResponseFormat = None
    json_schema: JsonSchema = None
    grammar: GrammarText = None


def only_one(*grammars: Grammar | None) -> Grammar | None:
    """The one that is there. Raises InvalidRequest, naming two, where there are several."""
    given = [each for each in grammars if each is not None]
    if len(given) > 1:
        raise InvalidRequest(
            f"{given[0].param} and {given[1].param} are both given; a reply can match one of them, leave the other out",
            param=given[1].param,
        )
    return given[0] if given else None
