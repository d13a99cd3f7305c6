"""Requests with a grammar, and how they ended."""

from __future__ import annotations

import json

from engine.api import (
    Finished,
    Grammar,
    GrammarKind,
    Request,
)
from fakes.listening import Ear
from fakes.parking_rig import ask

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 999},
        "tags": {"type": "array", "items": {"enum": ["hello", "the"]}, "maxItems": 2},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
JSON = Grammar(kind=GrammarKind.JSON_SCHEMA, source=json.dumps(SCHEMA))


def regex(source: str) -> Grammar:
    return Grammar(kind=GrammarKind.REGEX, source=source)


def gbnf(source: str) -> Grammar:
    return Grammar(kind=GrammarKind.GBNF, source=source)


def lark(source: str) -> Grammar:
    return Grammar(kind=GrammarKind.LARK, source=source)


def asked(request_id: str, grammar: Grammar, **fields: object) -> Request:
    """A request for a reply that the grammar allows, with room for it to end by itself."""
    fields = {"max_tokens": 200, "ignore_eos": False, "grammar": grammar, **fields}
    return ask(request_id, **fields)


def finished(ear: Ear, request_id: str) -> Finished:
    """Its end, which must not be a failure."""
    end = ear.wait_end(request_id)
    assert isinstance(end, Finished), end
    return end
