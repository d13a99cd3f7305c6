"""What vLLM's and SGLang's programs say of the form of a reply is honoured, and what is wrong with it is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.api import Grammar, GrammarKind, Origin, Request, Text
from engine.errors import InvalidRequest
from engine.runtime.grammar_compiler import GrammarCompiler
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    CHAT,
    MESSAGES,
    REPLIES,
    RESPONSES,
    TEXT,
    assert_error,
    on_a_loop,
    open_client,
)
from fakes.no_trials import NoTrials
from fakes.tiny_text import byte_level
from studio.server.protocol import ChatCompletionRequest
from studio.server.translate import chat_requests

SCHEMA = {"type": "object", "properties": {"b": {"type": "integer"}}}
GBNF = 'root ::= "a"'
SAME: list[tuple[dict[str, Any], GrammarKind, str]] = [
    ({"guided_json": SCHEMA}, GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)),
    ({"guided_json": json.dumps(SCHEMA)}, GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)),
    ({"guided_regex": "[a-z]+"}, GrammarKind.REGEX, "[a-z]+"),
    ({"guided_choice": ["yes", 'a "no"']}, GrammarKind.LARK, r'start: "yes" | "a \"no\""'),
    ({"guided_grammar": GBNF}, GrammarKind.GBNF, GBNF),
    ({"structured_outputs": {"json": SCHEMA}}, GrammarKind.JSON_SCHEMA, json.dumps(SCHEMA)),
    ({"structured_outputs": {"regex": "a", "json": None}}, GrammarKind.REGEX, "a"),
    ({"structured_outputs": {"choice": ["a"]}}, GrammarKind.LARK, 'start: "a"'),
    ({"structured_outputs": {"grammar": GBNF}}, GrammarKind.GBNF, GBNF),
    (
        {"structured_outputs": {"json_object": True}},
        GrammarKind.JSON_SCHEMA,
        '{"type": "object"}',
    ),
    ({"regex": "[a-z]+"}, GrammarKind.REGEX, "[a-z]+"),
    ({"ebnf": GBNF}, GrammarKind.GBNF, GBNF),
]


def grammar_of(fields: dict[str, Any]) -> Grammar | None:
    body = {"messages": [{"role": "user", "content": "hi"}], **fields}
    (request,) = chat_requests(ChatCompletionRequest.model_validate(body), "x")
    return request.grammar


@pytest.mark.parametrize(("fields", "kind", "source"), SAME, ids=[str(each[0]) for each in SAME])
def test_it_is_a_grammar_that_errors_call_by_the_name_it_came_by(
    fields: dict[str, Any], kind: GrammarKind, source: str
) -> None:
    grammar = grammar_of(fields)
    assert grammar is not None
    assert (grammar.kind, grammar.source) == (kind, source)
    assert grammar.param.partition(".")[0] in fields


@pytest.mark.parametrize(
    "fields",
    [
        {"guided_json": None, "guided_regex": None, "guided_choice": None, "regex": None},
        {"guided_choice": [], "guided_regex": "", "structured_outputs": {}},
        {"structured_outputs": {"json_object": False, "disable_any_whitespace": False}},
    ],
)
def test_nothing_asks_for_nothing(fields: dict[str, Any]) -> None:
    assert grammar_of(fields) is None


@pytest.mark.parametrize(
    "text", ["".join(map(chr, range(1, 128))), "a\u2028\x85\u00e4", "\U0001f600", "<|nobody|>"]
)
def test_a_choice_may_have_any_character(text: str) -> None:
    grammar = grammar_of({"guided_choice": ["other", text]})
    request = Request(request_id="r", origin=Origin.API, prompt=Text(text=""), grammar=grammar)
    tokenizer = byte_level()
    matcher = GrammarCompiler(tokenizer, NoTrials()).matcher_for(request)
    assert matcher is not None
    ids = tokenizer.encode(text)
    for end in range(1, len(ids) + 1):
        matcher.follow(ids[:end])
        assert matcher.error is None, matcher.error


def test_two_are_one_too_many() -> None:
    with pytest.raises(InvalidRequest, match="grammar and guided_regex are both given"):
        grammar_of({"guided_regex": "a", "grammar": GBNF})


@pytest.mark.parametrize("path", [CHAT, TEXT])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("guided_json", "{"),
        ("guided_json", 3),
        ("guided_regex", 3),
        ("guided_choice", "yes"),
        ("guided_choice", ["yes", ""]),
        ("guided_grammar", 3),
        ("guided_whitespace_pattern", " ?"),
        ("structured_outputs", "x"),
        ("structured_outputs", {"regex": 3}),
        ("structured_outputs", {"regex": "a", "choice": ["a"]}),
        ("structured_outputs", {"structural_tag": "x"}),
        ("structural_tag", "x"),
    ],
)
@on_a_loop
async def test_what_is_wrong_is_refused_by_name(path: str, name: str, value: object) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(path, json={**REPLIES[path], name: value})
    assert name in assert_error(answer, 400, "invalid_value", name)


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (RESPONSES, {"n": 2}),
        (RESPONSES, {"response_format": {"type": "json_object"}}),
        (MESSAGES, {"n": 2}),
        (MESSAGES, {"stop": ["x"]}),
        (MESSAGES, {"response_format": {"type": "json_object"}}),
        (MESSAGES, {"output_format": {"type": "text"}}),
    ],
)
@on_a_loop
async def test_a_field_of_another_route_is_not_passed_over(
    path: str, fields: dict[str, Any]
) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(path, json={**REPLIES[path], **fields})
        plain = await client.post(path, json={**REPLIES[path], **dict.fromkeys(fields)})
    (name,) = fields
    assert answer.status_code == 400
    assert name in answer.json()["error"]["message"]
    assert plain.status_code == 200


@on_a_loop
async def test_a_response_ends_at_a_stop_string_and_a_prediction_changes_nothing() -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        ends = await client.post(RESPONSES, json={"input": "hi", "stop": "there"})
        body = {**REPLIES[CHAT], "prediction": {"type": "content", "content": "x"}}
        predicted = await client.post(CHAT, json=body)
    assert (ends.status_code, predicted.status_code) == (200, 200)
    assert next(iter(engine.requests.values())).stop == ("there",)


@on_a_loop
async def test_anthropics_older_name_of_the_format_is_honoured() -> None:
    engine = FakeEngine()
    form = {"type": "json_schema", "schema": SCHEMA}
    body = {**REPLIES[MESSAGES], "output_format": form}
    async with open_client(engine) as client:
        answer = await client.post(MESSAGES, json=body)
        both = await client.post(MESSAGES, json={**body, "output_config": {"format": form}})
    assert answer.status_code == 200
    (request,) = engine.requests.values()
    assert request.grammar is not None
    assert json.loads(request.grammar.source) == SCHEMA
    assert_error(both, 400, "invalid_value")
