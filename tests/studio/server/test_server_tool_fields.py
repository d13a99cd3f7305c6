"""Tools on the wire become the engine's words, and what is wrong with them is named."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from engine.api import Tool, ToolCall, ToolChoice
from engine.errors import InvalidRequest
from studio.server.tool_fields import (
    MAX_CALLS,
    MAX_DEPTH,
    MAX_NAME_CHARS,
    MAX_OPTIONS,
    MAX_TOOLS,
    make_call,
    make_tool,
    offer,
    read_calls,
    read_choice,
    read_template_options,
    read_tools,
    wire_call,
)

SCHEMA = {"type": "object", "properties": {"ort": {"type": "string", "description": "für <wo>"}}}
WEATHER = {"name": "get_weather", "description": "Weather of a city", "parameters": SCHEMA}


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"properties": value}
    return value


def test_tools_keep_name_words_and_schema() -> None:
    (tool,) = read_tools([{"type": "function", "function": {**WEATHER, "strict": True}}])
    assert tool == Tool(
        name="get_weather",
        description="Weather of a city",
        parameters=json.dumps(SCHEMA, ensure_ascii=False),
        is_strict=True,
    )


def test_nothing_is_no_tools() -> None:
    assert read_tools(None) == read_tools([]) == ()
    assert read_calls(None) == read_calls([]) == read_template_options(None) == ()
    assert read_choice(None) is None


def test_a_tool_may_be_a_name_alone() -> None:
    assert read_tools([{"type": "function", "function": {"name": "ping"}}]) == (Tool(name="ping"),)
    assert read_tools([{"function": {"name": "ping", "description": None, "parameters": None}}])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x", "no list"),
        ([3], "at [0] no object"),
        ([{}], "at [0].function no object"),
        ([{"type": "web_search"}], "'web_search'; only function"),
        ([{"function": {}}], "at [0].function has no string as its name"),
        ([{"function": {"name": "no spaces"}}], "'no spaces', allowed are"),
        ([{"function": {"name": "-x"}}], "allowed are"),
        ([{"function": {"name": ""}}], "allowed are"),
        ([{"function": {"name": "x" * (MAX_NAME_CHARS + 1)}}], f"the limit is {MAX_NAME_CHARS}"),
        ([{"function": {"name": "<|im_end|>"}}], "allowed are"),
        ([{"function": {"name": "x", "description": 5}}], "5 as its description"),
        ([{"function": {"name": "x", "parameters": []}}], "no JSON schema"),
        ([{"function": {"name": "x", "parameters": {"type": "array"}}}], "of type 'array'"),
        ([{"function": {"name": "x", "parameters": deep(MAX_DEPTH + 1)}}], f"{MAX_DEPTH} deep"),
        ([{"function": {"name": "x", "strict": 1}}], "1 as its strict"),
        ([{"function": {"name": "x"}}] * 2, "two tools of the name 'x'"),
        ([{"function": {"name": "x"}}] * (MAX_TOOLS + 1), f"the limit is {MAX_TOOLS}"),
    ],
)  # fmt: skip
def test_a_wrong_tool_is_named(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_tools(value)
    assert words in str(caught.value)


def test_a_choice_is_a_word_or_a_function() -> None:
    assert read_choice("none") == (ToolChoice.NONE, "")
    assert read_choice("auto") == (ToolChoice.AUTO, "")
    assert read_choice("required") == (ToolChoice.REQUIRED, "")
    named = {"type": "function", "function": {"name": "f"}}
    assert read_choice(named) == (ToolChoice.NAMED, "f")


@pytest.mark.parametrize(
    "value",
    [
        "perhaps",
        3,
        {},
        {"type": "function"},
        {"type": "function", "function": {"name": 3}},
        "named",
    ],
)
def test_any_other_choice_is_wrong(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_choice(value)


def test_a_choice_must_be_among_the_tools() -> None:
    tools = (Tool(name="f"),)
    asked = offer(tools, (ToolChoice.NAMED, "f"), calls_in_parallel=False)
    assert (asked.tools, asked.tool_choice, asked.tool_name) == (tools, ToolChoice.NAMED, "f")
    assert not asked.calls_in_parallel
    assert offer(tools, None).tool_choice is ToolChoice.AUTO
    assert offer((), (ToolChoice.NONE, "")).tool_choice is ToolChoice.NONE
    for choice, field in (((ToolChoice.NAMED, "g"), "tool_choice"), ((ToolChoice.NAMED, "g"), "x")):
        with pytest.raises(InvalidRequest, match="'g', which is not among") as caught:
            offer(tools, choice, choice_field=field)
        assert caught.value.param == field
    with pytest.raises(InvalidRequest, match="there are no tools"):
        offer((), (ToolChoice.REQUIRED, ""))


def test_calls_of_earlier_turns_are_read_and_written_back() -> None:
    wire = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}]
    calls = read_calls(wire)
    assert calls == (ToolCall(call_id="1", name="f", arguments='{"a": 1}'),)
    assert [wire_call(call) for call in calls] == wire
    assert read_calls([{"function": {"name": "f", "arguments": {"ä": [1]}}}])[0].arguments == (
        '{"ä": [1]}'
    )
    assert make_call(None, "f", None).arguments == "{}"


@pytest.mark.parametrize("text", ['{\n "', "null", "[]", "5", '{"a": tru', "[" * 100_000])
def test_arguments_of_a_call_that_went_wrong_are_kept_as_their_text(text: str) -> None:
    (call,) = read_calls([{"id": "1", "function": {"name": "f", "arguments": text}}])
    assert call.arguments == text


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "no list"),
        ([1], "at [0] has no object"),
        ([{}], "at [0] has no object as its function"),
        ([{"type": "custom"}], "'custom'"),
        ([{"id": 4, "function": {"name": "f", "arguments": "{}"}}], "4 as its id"),
        ([{"function": {"name": "f", "arguments": 5}}], "5 as its arguments"),
        ([{"function": {"name": "f", "arguments": deep(MAX_DEPTH + 1)}}], "deep"),
        ([{"function": {"arguments": "{}"}}], "no string as its name"),
        ([{}] * (MAX_CALLS + 1), f"the limit is {MAX_CALLS}"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_named(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_calls(value)
    assert words in str(caught.value)


def test_template_options_are_named_json_values() -> None:
    options = {"enable_thinking": False, "x": [{"y": None}]}
    assert dict(read_template_options(options)) == options


@pytest.mark.parametrize(
    "value",
    [
        [],
        {"tools": []},
        {"a b": 1},
        {"x": deep(MAX_DEPTH + 1)},
        {f"v{i}": 1 for i in range(MAX_OPTIONS + 1)},
    ],
)
def test_other_template_options_are_wrong(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_template_options(value)


def allowing(*names: str, mode: str = "required") -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}


def test_some_of_the_tools_may_be_allowed() -> None:
    tools = (Tool(name="f"), Tool(name="g"), Tool(name="h"))
    asked = offer(tools, read_choice(allowing("h", "f")))
    assert (asked.tools, asked.tool_choice) == ((tools[0], tools[2]), ToolChoice.REQUIRED)
    assert offer(tools, read_choice(allowing("g", mode="auto"))).tool_choice is ToolChoice.AUTO
    with pytest.raises(InvalidRequest, match="allows the tool 'x'") as caught:
        offer(tools, read_choice(allowing("f", "x")))
    assert caught.value.param == "tool_choice"


@pytest.mark.parametrize(
    "value",
    [
        {"type": "allowed_tools"},
        allowing(),
        allowing("f", mode="none"),
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [5]}},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"function": {}}]}},
    ],
)
def test_what_is_wrong_with_allowed_tools_is_told(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="has "):
        read_choice(value)


@pytest.mark.parametrize("read", [read_tools, read_choice, read_calls, read_template_options])
def test_whatever_comes_is_read_or_wrong(read: Callable[[object], object]) -> None:
    values: list[object] = [None, True, 0, 1.5, "", "x", [], {}, [[]], [None], [{"function": None}]]
    values += [{"type": "function", "function": value} for value in values]
    values += [[value] for value in values]
    for value in values:
        with contextlib.suppress(ValueError):  # anything else fails the test
            read(value)


def test_parts_make_tools_of_other_shapes() -> None:
    tool = make_tool("f", "d", {"type": "object"}, is_strict=None)
    assert tool == Tool(name="f", description="d", parameters='{"type": "object"}')
