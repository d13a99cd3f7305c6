"""JSON schemas of the wire types, by their names. Pure; any thread."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import get_annotations
from typing import Any, get_args

from pydantic.json_schema import models_json_schema

from studio.server.openapi.field_words import FIELD_WORDS
from studio.server.openapi.json_schema import Schema
from studio.server.openapi.request_schemas import READ_FIELDS, WHOLES
from studio.server.wire import WireModel

_PREFIX = "#/components/schemas/"


def ref_of(body: type[WireModel]) -> str:
    """Where the document describes the type."""
    return _PREFIX + body.__name__


def body_schemas(bodies: Iterable[type[WireModel]]) -> dict[str, Schema]:
    """Of wire types and of those that they are made of; fields that functions read say what these take."""
    types = sorted(
        {part for body in bodies for part in _with_parts(body)}, key=lambda t: t.__name__
    )
    _, whole = models_json_schema(
        [(each, "validation") for each in types], ref_template=_PREFIX + "{model}"
    )
    schemas = {}
    for each in types:
        schema = _without_titles(whole["$defs"][each.__name__])
        _describe(each, schema)
        schemas[each.__name__] = {**schema, **WHOLES.get(each, {})}
    return schemas


def _with_parts(body: type[WireModel]) -> set[type[WireModel]]:
    """The type, and every other that a field of it is made of."""
    found = {body}
    for field in body.model_fields.values():
        for part in _types_in(field.annotation):
            found |= _with_parts(part)
    return found


def _types_in(annotation: object) -> set[type[WireModel]]:
    if isinstance(annotation, type) and issubclass(annotation, WireModel):
        return {annotation}
    return {part for each in get_args(annotation) for part in _types_in(each)}


def _describe(body: type[WireModel], schema: Schema) -> None:
    """Put in what is known of fields that are read by functions, of the type that has defined each."""
    for name in schema["properties"]:
        for owner in body.__mro__:
            if name in get_annotations(owner):
                known = READ_FIELDS.get(owner, {}).get(name)
                schema["properties"][name] = _worded(name, known or schema["properties"][name])
                break


def _worded(name: str, said: Schema) -> Schema:
    """With words of what it means, unless it has some."""
    words = FIELD_WORDS.get(name)
    return said if words is None or "description" in said else {**said, "description": words}


def _without_titles(value: Any) -> Any:
    """They only repeat names."""
    if isinstance(value, list):
        return [_without_titles(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_titles(each)
        for key, each in value.items()
        if key != "title" or not isinstance(each, str)
    }
