"""What clients of Anthropic may send: read into the engine's words, or refused by name."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from engine.api import Chat, ChatMessage, GrammarKind, Tool, ToolCall, ToolChoice
from fakes.fake_engine import FakeEngine
from fakes.http_driver import COUNT, HELLO, MESSAGES, REPLIES, assert_error, on_a_loop, open_client
from studio.server.messages.fields import MessagesRequest, PromptFields
from studio.server.messages.translate import chat_of, messages_request

LOOK = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}}


def read(**fields: Any) -> MessagesRequest:
    return MessagesRequest.model_validate({**HELLO, "max_tokens": 9, **fields})


def turns(*messages: dict[str, Any], **fields: Any) -> tuple[ChatMessage, ...]:
    return chat_of(read(messages=list(messages), **fields)).messages


def test_system_is_a_string_or_blocks_and_stands_first() -> None:
    expected = (
        ChatMessage(role="system", content="Be brief.\nBe kind."),
        ChatMessage(role="user", content="Hi"),
    )
    blocks = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
    hi = {"role": "user", "content": "Hi"}
    assert turns(hi, system="Be brief.\nBe kind.") == expected
    assert turns(hi, system=blocks) == expected
    assert turns(hi, system=None) == expected[1:]


def test_thoughts_calls_and_results_become_turns() -> None:
    found = turns(
        {"role": "user", "content": [{"type": "text", "text": "What is up?", "cache_control": {}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look first.", "signature": "x"},
                {"type": "redacted_thinking", "data": "?"},
                {"type": "text", "text": "I will "},
                {"type": "text", "text": "look."},
                CALL,
                {**CALL, "id": "toolu_2", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "clouds"},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                },
                {"type": "text", "text": "Well?"},
            ],
        },
    )
    assert found == (
        ChatMessage(role="user", content="What is up?"),
        ChatMessage(
            role="assistant",
            content="I will look.",
            reasoning="Look first.",
            tool_calls=(
                ToolCall(call_id="toolu_1", name="look", arguments='{"at": "sky"}'),
                ToolCall(call_id="toolu_2", name="look", arguments="{}"),
            ),
        ),
        ChatMessage(role="tool", content="clouds", tool_call_id="toolu_1", name="look"),
        ChatMessage(role="tool", content="a\nb", tool_call_id="toolu_2", name="look"),
        ChatMessage(role="user", content="Well?"),
    )


def test_neighbours_of_one_role_are_one_turn_and_failures_are_not_silent() -> None:
    found = turns(
        {"role": "user", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}]},
        {"role": "assistant", "content": [CALL]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True}],
        },
    )
    assert [(turn.role, turn.content) for turn in found] == [
        ("user", "a\nb"),
        ("assistant", ""),
        ("tool", "the tool failed"),
    ]


def test_a_last_turn_of_the_assistant_is_gone_on_with() -> None:
    chat = chat_of(read(messages=[*HELLO["messages"], {"role": "assistant", "content": "Hel"}]))
    assert chat.continues
    assert not chat_of(read()).continues


@pytest.mark.parametrize(
    ("wire", "choice", "name", "in_parallel"),
    [
        (None, ToolChoice.AUTO, "", True),
        ({"type": "auto", "disable_parallel_tool_use": True}, ToolChoice.AUTO, "", False),
        ({"type": "any"}, ToolChoice.REQUIRED, "", True),
        ({"type": "none"}, ToolChoice.NONE, "", True),
        ({"type": "tool", "name": "look"}, ToolChoice.NAMED, "look", True),
    ],
)
def test_tools_and_their_choice(
    wire: object, choice: ToolChoice, name: str, in_parallel: bool
) -> None:
    chat = chat_of(read(tools=[{**LOOK, "type": "custom", "strict": True}], tool_choice=wire))
    assert chat.tools == (
        Tool(name="look", description="Looks.", parameters='{"type": "object"}', is_strict=True),
    )
    assert (chat.tool_choice, chat.tool_name) == (choice, name)
    assert chat.calls_in_parallel is in_parallel


def test_thinking_is_told_to_the_template() -> None:
    assert chat_of(read()).template_options == ()
    off = chat_of(read(thinking={"type": "disabled"})).template_options
    assert off == (("enable_thinking", False), ("thinking", False))
    on = chat_of(read(thinking={"type": "enabled", "budget_tokens": 2048})).template_options
    assert on == (("enable_thinking", True), ("thinking", True), ("thinking_budget", 2048))
    hard = chat_of(read(output_config={"effort": "high"})).template_options
    assert hard == (("reasoning_effort", "high"),)


def test_the_form_of_the_text_is_a_grammar() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    wire = read(output_config={"format": {"type": "json_schema", "schema": schema}})
    grammar = messages_request(wire, "msg_1").grammar
    assert grammar is not None
    assert (grammar.kind, grammar.param) == (GrammarKind.JSON_SCHEMA, "output_config.format")
    assert json.loads(grammar.source) == schema


def test_the_rest_of_a_request() -> None:
    wire = read(stop_sequences=["END"], temperature=0, top_p=0.5, top_k=3, max_wait=2.5, seed=1)
    request = messages_request(wire, "msg_1")
    assert (request.request_id, request.max_tokens, request.stop) == ("msg_1-0", 9, ("END",))
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0, 0.5, 3)
    assert (request.max_wait_s, sampling.seed) == (2.5, 1)
    assert request.tells_parts
    assert isinstance(request.prompt, Chat)


IMAGE = {"type": "image", "source": {"type": "url", "url": "http://x"}}
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": []}, "messages", "at least one"),
    ({"messages": "hi"}, "messages", "no list"),
    ({"messages": [1]}, "messages", "[0]"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages", "[0] the role 'tool'"),
    ({"messages": [{"role": "user", "content": 1}]}, "messages", "[0].content"),
    ({"messages": [{"role": "user", "content": [IMAGE]}]}, "messages", "'image'"),
    ({"messages": [{"role": "user", "content": [CALL]}]}, "messages", "'tool_use'"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages", "[0].content[0]"),
    (
        {"messages": [{"role": "assistant", "content": [{**CALL, "input": "x"}]}]},
        "messages",
        "[0].content[0]",
    ),
    ({"system": [IMAGE]}, "system", "'image'"),
    ({"system": 1}, "system", "neither"),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools", "web_search"),
    ({"tools": [{"name": "look"}]}, "tools", "input_schema"),
    ({"tools": [{**LOOK, "name": "a b"}]}, "tools", "'a b'"),
    ({"tools": [LOOK, LOOK]}, "tools", "two tools"),
    ({"tool_choice": {"type": "sometimes"}}, "tool_choice", "auto, any, tool, none"),
    ({"tool_choice": {"type": "any"}}, "tool_choice", "no tools"),
    ({"tool_choice": {"type": "tool", "name": "hear"}, "tools": [LOOK]}, "tool_choice", "'hear'"),
    ({"thinking": {"type": "perhaps"}}, "thinking", "enabled"),
    ({"thinking": {"type": "enabled", "budget_tokens": "9"}}, "thinking", "budget_tokens"),
    ({"output_config": {"format": {"type": "text"}}}, "output_config.format", "json_schema"),
    ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format", "schema"),
    ({"mcp_servers": [{"url": "x"}]}, "mcp_servers", "not supported"),
    ({"container": "c1"}, "container", "not supported"),
]
WRONG_TO_GENERATE: list[tuple[dict[str, Any], str, str]] = [
    ({"max_tokens": 0}, "max_tokens", "greater than or equal to 1"),
    ({"max_tokens": None}, "max_tokens", "null"),
    ({"stop_sequences": ["a"] * 17}, "stop_sequences", "limit is 16"),
    ({"stop_sequences": ["", "a"]}, "stop_sequences", "empty"),
    ({"stop_sequences": "a"}, "stop_sequences", "'a'"),
    ({"temperature": -1}, "temperature", "-1"),
    ({"top_k": 0.5}, "top_k", "0.5"),
]


@on_a_loop
async def test_every_wrong_field_is_named_and_nothing_is_queued() -> None:
    engine = FakeEngine()
    cases = [(path, *case) for path in (MESSAGES, COUNT) for case in WRONG]
    cases += [(MESSAGES, *case) for case in WRONG_TO_GENERATE]
    async with open_client(engine) as client:
        for path, change, param, hint in cases:
            answer = await client.post(path, json={**REPLIES[MESSAGES], **change})
            message = assert_error(answer, 400, "invalid_value")
            assert message.startswith(param), (change, message)
            assert hint in message, (change, message)
            assert len(message) < 300, (change, message)
        without = await client.post(MESSAGES, json=HELLO)
    assert assert_error(without, 400, "invalid_value") == "max_tokens is missing"
    assert not engine.requests


ODD_VALUES: list[Any] = [
    None, True, 0, -1, 1e308, 1 << 80, "", "\u0000", "x" * 5000, [], [[]], [None], {}, {"type": "text"}, [{}],
    {"type": []}, {"type": "tool"}, {"type": "enabled"}, [{"type": "text", "text": 1}],
    [{"role": "user", "content": [[]]}], [{"role": [], "content": ""}], [{"name": "a", "input_schema": []}],
    [{"role": "assistant", "content": [{"type": "tool_use", "id": 1, "name": "a", "input": 2}]}],
    [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": None}]}],
]  # fmt: skip


@pytest.mark.parametrize("path", [MESSAGES, COUNT])
@on_a_loop
async def test_no_value_of_any_field_makes_the_server_fail(path: str) -> None:
    wire = MessagesRequest if path == MESSAGES else PromptFields
    bodies = [
        {**REPLIES[MESSAGES], name: value} for name in wire.model_fields for value in ODD_VALUES
    ]
    random.Random(7).shuffle(bodies)
    async with open_client(FakeEngine()) as client:
        for body in bodies:
            answer = await client.post(path, json=body)
            assert answer.status_code in (200, 400, 404), (body, answer.text)


@on_a_loop
async def test_what_is_harmless_is_ignored() -> None:
    neutral = {
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "context_management": {"edits": []},
        "cache_control": {"type": "ephemeral"},
        "stop_sequences": None,
        "tools": None,
        "tool_choice": None,
        "thinking": None,
        "temperature": None,
        "frobnicate": [1],
    }
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "x-2025-01-01"}
    async with open_client(FakeEngine()) as client:
        for path in (MESSAGES, COUNT):
            body = {**REPLIES[MESSAGES], **neutral}
            answer = await client.post(path, json=body, headers=headers)
            assert answer.status_code == 200, answer.text
