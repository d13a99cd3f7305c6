"""Short words for JSON schema. Pure; any thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
NULL: Schema = {"type": "null"}
OBJECT: Schema = {"type": "object"}


def shape(required: Mapping[str, Schema], **optional: Schema) -> Schema:
    """An object; further properties may be there."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
    }


def many(items: Schema, **more: object) -> Schema:
    return {"type": "array", "items": items, **more}


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def or_null(schema: Schema) -> Schema:
    return either(schema, NULL)


def always(value: object) -> Schema:
    return {"const": value}


def one_of(*values: object) -> Schema:
    return {"enum": list(values)}
