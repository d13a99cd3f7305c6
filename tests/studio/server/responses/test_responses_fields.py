"""What clients may ask for a response with: read into the engine's words, or refused by name."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.api import Chat, ChatMessage, Tool, ToolCall, ToolChoice
from engine.errors import InvalidRequest
from fakes.fake_engine import FakeEngine
from fakes.http_driver import RESPONSES, assert_error, on_a_loop, open_client
from studio.server.responses.fields import ResponsesRequest
from studio.server.responses.translate import chat_of, responses_request

LOOK = {
    "type": "function",
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object"},
    "strict": True,
}
HEAR = {"type": "function", "name": "hear"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"at":"sky"}'}


def read(**fields: Any) -> ResponsesRequest:
    return ResponsesRequest.model_validate({"input": "Hi", **fields})


def chat(**fields: Any) -> Chat:
    wire = read(**fields)
    return chat_of(wire, wire.input or ())


def test_a_string_is_a_turn_of_the_user_and_instructions_stand_first() -> None:
    assert chat(instructions="Be brief.").messages == (
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="user", content="Hi"),
    )


def test_items_become_turns() -> None:
    found = chat(
        instructions="Be brief.",
        input=[
            {"role": "developer", "content": "Use English."},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What"},
                    {"type": "input_text", "text": "is up?"},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": "short"}],
                "content": [{"type": "reasoning_text", "text": "Look first."}],
                "encrypted_content": "?",
            },
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "status": "completed",
                "content": [{"type": "output_text", "text": "I will look.", "annotations": []}],
            },
            CALL,
            {**CALL, "call_id": "call_2", "arguments": ""},
            {"type": "function_call_output", "call_id": "call_1", "output": "clouds"},
            {
                "type": "function_call_output",
                "call_id": "call_2",
                "output": [{"type": "input_text", "text": "stars"}],
            },
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]},
            {"role": "assistant", "content": "Clouds."},
        ],
    ).messages
    assert found == (
        ChatMessage(role="system", content="Be brief.\nUse English."),
        ChatMessage(role="user", content="What\nis up?"),
        ChatMessage(
            role="assistant",
            content="I will look.",
            reasoning="Look first.",
            tool_calls=(
                ToolCall(call_id="call_1", name="look", arguments='{"at":"sky"}'),
                ToolCall(call_id="call_2", name="look", arguments="{}"),
            ),
        ),
        ChatMessage(role="tool", content="clouds", tool_call_id="call_1", name="look"),
        ChatMessage(role="tool", content="stars", tool_call_id="call_2", name="look"),
        ChatMessage(role="assistant", content="Clouds.", reasoning="so"),
    )


@pytest.mark.parametrize(
    ("wire", "choice", "name", "offered"),
    [
        (None, ToolChoice.AUTO, "", ["look", "hear"]),
        ("auto", ToolChoice.AUTO, "", ["look", "hear"]),
        ("none", ToolChoice.NONE, "", ["look", "hear"]),
        ("required", ToolChoice.REQUIRED, "", ["look", "hear"]),
        ({"type": "function", "name": "hear"}, ToolChoice.NAMED, "hear", ["look", "hear"]),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [HEAR]},
            ToolChoice.REQUIRED,
            "",
            ["hear"],
        ),
    ],
)
def test_tools_and_their_choice(
    wire: object, choice: ToolChoice, name: str, offered: list[str]
) -> None:
    found = chat(tools=[LOOK, HEAR], tool_choice=wire, parallel_tool_calls=False)
    assert [tool.name for tool in found.tools] == offered
    assert (found.tool_choice, found.tool_name) == (choice, name)
    assert not found.calls_in_parallel
    assert (
        Tool(name="look", description="Looks.", parameters='{"type": "object"}', is_strict=True)
        == chat(tools=[LOOK]).tools[0]
    )


@pytest.mark.parametrize(
    ("effort", "is_on"), [("none", False), ("minimal", False), ("low", True), ("high", True)]
)
def test_effort_is_told_to_the_template(effort: str, *, is_on: bool) -> None:
    assert chat().template_options == ()
    assert chat(reasoning={"summary": "auto"}).template_options == ()
    assert dict(chat(reasoning={"effort": effort}).template_options) == {
        "enable_thinking": is_on,
        "thinking": is_on,
        "reasoning_effort": effort,
    }


def test_the_rest_of_a_request() -> None:
    wire = read(temperature=0, top_p=0.5, max_output_tokens=9, max_wait=2.5, seed=1, top_k=3)
    request = responses_request(wire, wire.input or (), "resp_1")
    assert (request.request_id, request.max_tokens, request.max_wait_s) == ("resp_1-0", 9, 2.5)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0, 0.5, 3)
    assert (sampling.seed, sampling.logprobs) == (1, None)
    assert request.tells_parts
    assert read(include=["message.output_text.logprobs"]).logprobs == 0
    assert read(top_logprobs=3).logprobs == 3


def test_allowed_tools_must_be_offered() -> None:
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [HEAR]}
    with pytest.raises(InvalidRequest, match="'hear'"):
        chat(tools=[LOOK], tool_choice=allowed)


IMAGE = {"type": "input_image", "image_url": "http://x"}
WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"input": []}, "input", "no items"),
    ({"input": 1}, "input", "neither"),
    ({"input": [1]}, "input", "[0]"),
    ({"input": [{"type": "computer_call"}]}, "input", "'computer_call'"),
    ({"input": [{"role": "robot", "content": "x"}]}, "input", "'robot'"),
    ({"input": [{"role": "user", "content": [IMAGE]}]}, "input", "'input_image'"),
    ({"input": [{"role": "user", "content": None}]}, "input", "[0].content"),
    ({"input": [{**CALL, "arguments": 5}]}, "input", "[0]"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input", "call_id"),
    ({"input": [{"type": "reasoning", "content": ["x"]}]}, "input", "[0].content[0]"),
    ({"input": [{"type": "item_reference", "id": "msg_9"}]}, "input", "'msg_9'"),
    ({"tools": [{"type": "web_search"}]}, "tools", "'web_search'"),
    ({"tools": [{"type": "function", "function": {"name": "look"}}]}, "tools", "name"),
    ({"tools": [LOOK, LOOK]}, "tools", "two tools"),
    ({"tool_choice": "sometimes"}, "tool_choice", "'sometimes'"),
    ({"tool_choice": {"type": "file_search"}}, "tool_choice", "'file_search'"),
    ({"tool_choice": "required"}, "tool_choice", "no tools"),
    ({"tool_choice": {"type": "function", "name": "x"}}, "tool_choice", "'x'"),
    ({"background": True}, "background", "not supported"),
    ({"conversation": "conv_1"}, "conversation", "not supported"),
    ({"prompt": {"id": "p"}}, "prompt", "not supported"),
    ({"truncation": "sometimes"}, "truncation", "auto"),
    ({"metadata": {"k": 1}}, "metadata.k", "string"),
    ({"metadata": {str(n): "" for n in range(17)}}, "metadata", "limit is 16"),
    ({"metadata": {"k": "x" * 513}}, "metadata", "512"),
    ({"top_logprobs": 21}, "top_logprobs", "20"),
    ({"temperature": "hot"}, "temperature", "'hot'"),
    ({"max_output_tokens": 0.5}, "max_output_tokens", "0.5"),
]


@on_a_loop
async def test_every_wrong_field_is_named_and_nothing_is_queued() -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        for change, param, hint in WRONG:
            answer = await client.post(RESPONSES, json={"input": "Hi", **change})
            message = assert_error(answer, 400, "invalid_value", param)
            assert hint in message, (change, message)
            assert len(message) < 300, (change, message)
        without = await client.post(RESPONSES, json={})
    assert assert_error(without, 400, "invalid_value", "input") == "input is missing"
    assert not engine.requests


ODD_VALUES: list[Any] = [
    None, True, 0, -1, 1e308, 1 << 80, "", "\u0000", "x" * 5000, [], [[]], [None], {}, {"type": "text"}, [{}],
    {"type": []}, {"type": "function"}, {"effort": "x"}, [{"role": "user", "content": [[]]}],
    [{"role": [], "content": ""}], [{"type": "function", "name": 1}], [{"type": "reasoning", "summary": 1}],
    [{"id": 1}], [{"type": "function_call", "arguments": {}}], {"a": "b"},
    {"type": "allowed_tools", "mode": [], "tools": [{}]},
]  # fmt: skip


@on_a_loop
async def test_no_value_of_any_field_makes_the_server_fail() -> None:
    bodies = [
        {"input": "Hi", name: value}
        for name in ResponsesRequest.model_fields
        for value in ODD_VALUES
    ]
    random.Random(7).shuffle(bodies)
    async with open_client(FakeEngine()) as client:
        for body in bodies:
            answer = await client.post(RESPONSES, json=body)
            assert answer.status_code in (200, 400, 404), (body, answer.text)


@on_a_loop
async def test_what_is_harmless_is_ignored() -> None:
    neutral = {
        "metadata": None,
        "service_tier": "auto",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "stream_options": {"include_obfuscation": False},
        "include": ["reasoning.encrypted_content"],
        "background": False,
        "conversation": None,
        "previous_response_id": None,
        "tools": [],
        "tool_choice": None,
        "text": {"format": {"type": "text"}, "verbosity": "low"},
        "max_tool_calls": 3,
        "temperature": None,
        "frobnicate": [1],
    }
    async with open_client(FakeEngine()) as client:
        answer = await client.post(RESPONSES, json={"input": "Hi", **neutral})
    assert answer.status_code == 200, answer.text
