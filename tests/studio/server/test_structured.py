"""What a client says of the form of a reply is read as it means it, and what is wrong with it is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from engine.api import Grammar, GrammarKind
from engine.errors import InvalidRequest
from studio.server.completion_requests import CompletionRequest, completion_requests
from studio.server.protocol import ChatCompletionRequest
from studio.server.structured import ResponseFormat, TextFormat, object_grammar
from studio.server.translate import chat_requests

SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}, "a": {"enum": ["\u00e9"]}}}
RESPONSE_FORMAT: TypeAdapter[Grammar | None] = TypeAdapter(ResponseFormat)
TEXT_FORMAT: TypeAdapter[Any] = TypeAdapter(TextFormat)


def grammar_of(fields: dict[str, Any]) -> Grammar | None:
    body = {"messages": [{"role": "user", "content": "hi"}], **fields}
    (request,) = chat_requests(ChatCompletionRequest.model_validate(body), "x")
    return request.grammar


def schema_of(grammar: Grammar | None) -> object:
    assert grammar is not None
    assert grammar.kind is GrammarKind.JSON_SCHEMA
    return json.loads(grammar.source)


@pytest.mark.parametrize("kind", [None, {"type": "text"}])
def test_text_asks_for_nothing(kind: object) -> None:
    assert grammar_of({"response_format": kind}) is None
    assert grammar_of({"json_schema": None, "grammar": ""}) is None
    assert grammar_of({"json_schema": {}}) is None


def test_a_json_object_is_any_object() -> None:
    grammar = grammar_of({"response_format": {"type": "json_object"}})
    assert grammar == object_grammar("response_format")
    assert schema_of(grammar) == {"type": "object"}


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}},
        {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        {"type": "json_schema", "schema": SCHEMA},
        {"type": "json_object", "schema": SCHEMA},
    ],
    ids=json.dumps,
)
def test_a_schema_is_kept_in_the_order_of_its_properties(kind: object) -> None:
    grammar = grammar_of({"response_format": kind})
    assert grammar is not None
    assert grammar.param == "response_format"
    assert grammar.source == json.dumps(SCHEMA, ensure_ascii=False)


def test_llama_servers_fields_are_read() -> None:
    assert schema_of(grammar_of({"json_schema": SCHEMA})) == SCHEMA
    gbnf = Grammar(kind=GrammarKind.GBNF, source='root ::= "a"')
    assert grammar_of({"grammar": gbnf.source}) == gbnf
    lark = Grammar(kind=GrammarKind.LARK, source="%llguidance {}\nstart: /a/")
    assert grammar_of({"grammar": lark.source}) == lark


def test_text_completions_have_the_same_fields() -> None:
    wire = CompletionRequest.model_validate(
        {"prompt": ["a", "b"], "response_format": {"type": "json_object"}, "n": 2}
    )
    requests = completion_requests(wire, "x")
    assert [request.grammar for request in requests] == [object_grammar("response_format")] * 4


def test_the_format_of_a_response_is_told_again_as_it_was_asked_for() -> None:
    asked = {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}
    found = TEXT_FORMAT.validate_python(asked)
    assert found.wire == asked
    assert schema_of(found.grammar) == SCHEMA
    assert found.grammar.param == "text.format"
    plain = TEXT_FORMAT.validate_python({"type": "text"})
    assert (plain.wire, plain.grammar) == ({"type": "text"}, None)
    assert TEXT_FORMAT.validate_python(None) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("json", "is no object with a type"),
        ({}, "is no object with a type"),
        ({"type": 3}, "is no object with a type"),
        ({"type": "xml"}, "is of the type 'xml', allowed are text, json_object and json_schema"),
        ({"type": "json_schema"}, "has no json_schema"),
        ({"type": "json_schema", "json_schema": []}, "has no json_schema"),
        ({"type": "json_schema", "json_schema": {"name": "x"}}, "has no schema"),
        ({"type": "json_schema", "json_schema": {"schema": True}}, "a schema that is no object"),
        ({"type": "json_schema", "json_schema": {"name": 3, "schema": {}}}, "name is no string"),
        (
            {"type": "json_schema", "json_schema": {"strict": "yes", "schema": {}}},
            "strict is neither",
        ),
        ({"type": "json_object", "schema": 3}, "a schema that is no object"),
    ],
    ids=json.dumps,
)
def test_what_is_wrong_with_a_format_is_named(value: object, words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        RESPONSE_FORMAT.validate_python(value)
    assert words in str(caught.value)


def test_a_reply_can_match_one_thing_only() -> None:
    both = {"response_format": {"type": "json_object"}, "grammar": "root ::= [a-z]"}
    with pytest.raises(
        InvalidRequest, match="response_format and grammar are both given"
    ) as caught:
        grammar_of(both)
    assert caught.value.param == "grammar"
    assert grammar_of({**both, "response_format": {"type": "text"}}) is not None
