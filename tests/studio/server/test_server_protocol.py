"""Bodies that are not as they must be: each is a 400 naming the field, and nothing reaches the engine."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from fakes.fake_engine import FakeEngine
from fakes.http_driver import BODIES, CHAT, HELLO, TEXT, assert_error, on_a_loop, open_client
from studio.server.completion_requests import CompletionRequest
from studio.server.protocol import ChatCompletionRequest

BOTH: list[tuple[dict[str, Any], str]] = [
    ({"temperature": "hot"}, "temperature"),
    ({"temperature": -1}, "temperature"),
    ({"temperature": True}, "temperature"),
    ({"top_p": 1.5}, "top_p"),
    ({"top_k": 1.5}, "top_k"),
    ({"top_k": -7}, "top_k"),
    ({"min_p": -0.5}, "min_p"),
    ({"typical_p": 2}, "typical_p"),
    ({"repetition_penalty": 0}, "repetition_penalty"),
    ({"repeat_penalty": 0}, "repeat_penalty"),
    ({"repeat_last_n": -2}, "repeat_last_n"),
    ({"repeat_penalty": "x"}, "repeat_penalty"),
    ({"frequency_penalty": 1000}, "frequency_penalty"),
    ({"presence_penalty": []}, "presence_penalty"),
    ({"dry_base": 0}, "dry_base"),
    ({"dry_sequence_breakers": [1]}, "dry_sequence_breakers[0]"),
    ({"seed": 1.5}, "seed"),
    ({"seed": 1 << 70}, "seed"),
    ({"n": 0}, "n"),
    ({"n": 129}, "n"),
    ({"max_tokens": -5}, "max_tokens"),
    ({"max_tokens": "7"}, "max_tokens"),
    ({"stop": 5}, "stop"),
    ({"stop": ["a", 3]}, "stop[1]"),
    ({"stop": ["x"] * 17}, "stop"),
    ({"stream": "yes"}, "stream"),
    ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"stream_options": []}, "stream_options"),
    ({"model": 3}, "model"),
    ({"ignore_eos": 1}, "ignore_eos"),
    ({"logit_bias": ["a"]}, "logit_bias"),
    ({"logit_bias": {"AI": 1}}, "logit_bias"),
    ({"logit_bias": {"-5": 1}}, "logit_bias"),
    ({"logit_bias": {"5": 1000}}, "logit_bias"),
    ({"logit_bias": {"5": None}}, "logit_bias"),
    ({"logit_bias": {"9" * 5000: 1}}, "logit_bias"),
    ({"tools": [{}]}, "tools"),
    ({"tool_choice": "required"}, "tool_choice"),
    ({"functions": [{}]}, "functions"),
    ({"response_format": {"type": "xml"}}, "response_format"),
    ({"grammar": 5}, "grammar"),
    ({"mirostat": 2}, "mirostat"),
    ({"chat_template_kwargs": {"not a name": False}}, "chat_template_kwargs"),
]
CHAT_ONLY: list[tuple[dict[str, Any], str]] = [
    ({"messages": []}, "messages"),
    ({"messages": "hi"}, "messages"),
    ({"messages": None}, "messages"),
    ({"messages": ["hi"]}, "messages[0]"),
    ({"messages": [{"content": "hi"}]}, "messages[0].role"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content"),
    ({"messages": [*HELLO["messages"], {"role": "wizard", "content": "x"}]}, "messages[1].role"),
    ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "tool"}]}, "messages[0].content"),
    (
        {"messages": [{"role": "tool", "content": "x", "tool_call_id": 3}]},
        "messages[0].tool_call_id",
    ),
    (
        {
            "messages": [
                {"role": "user", "content": "x", "tool_calls": [{"function": {"name": "f"}}]}
            ]
        },
        "messages[0].tool_calls",
    ),
    (
        {
            "messages": [
                {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": 5}}]}
            ]
        },
        "messages[0].tool_calls",
    ),
    (
        {"messages": [{"role": "assistant", "function_call": {"name": "f"}}]},
        "messages[0].function_call",
    ),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}, "tools"),
    ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
    ({"tool_choice": "perhaps"}, "tool_choice"),
    ({"parallel_tool_calls": "no"}, "parallel_tool_calls"),
    ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs"),
    (
        {"messages": [{"role": "assistant", "content": None, "tool_calls": [{}]}]},
        "messages[0].tool_calls",
    ),
    ({"logprobs": 1}, "logprobs"),
    ({"top_logprobs": 3}, "top_logprobs"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"max_completion_tokens": -2}, "max_completion_tokens"),
]
TEXT_ONLY: list[tuple[dict[str, Any], str]] = [
    ({"prompt": []}, "prompt"),
    ({"prompt": {}}, "prompt"),
    ({"prompt": [1, 2.5]}, "prompt"),
    ({"prompt": [1, True]}, "prompt"),
    ({"prompt": [-1]}, "prompt"),
    ({"prompt": [1 << 31]}, "prompt"),
    ({"prompt": ["a", 1]}, "prompt"),
    ({"prompt": [[1], ["a"]]}, "prompt"),
    ({"prompt": ["a"] * 129}, "prompt"),
    ({"prompt": [1] * ((1 << 20) + 1)}, "prompt"),
    ({"prompt": ["a"] * 65, "n": 2}, "n"),
    ({"logprobs": True}, "logprobs"),
    ({"logprobs": 21}, "logprobs"),
    ({"echo": 1}, "echo"),
    ({"suffix": 5}, "suffix"),
    ({"suffix": "end", "prompt": [1, 2]}, "suffix"),
    ({"best_of": 129}, "best_of"),
    ({"best_of": 1, "n": 2}, "best_of"),
    ({"best_of": 3, "stream": True}, "best_of"),
    ({"stop_token_ids": [-1]}, "stop_token_ids[0]"),
]
CASES = (
    [(path, change, param) for path in BODIES for change, param in BOTH]
    + [(CHAT, change, param) for change, param in CHAT_ONLY]
    + [(TEXT, change, param) for change, param in TEXT_ONLY]
)


@on_a_loop
async def test_every_wrong_field_is_named_and_nothing_is_queued() -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        for path, change, param in CASES:
            answer = await client.post(path, json={**BODIES[path], **change})
            message = assert_error(answer, 400, "invalid_value", param)
            assert len(message) < 300, (change, message)
    assert not engine.requests


@pytest.mark.parametrize("path", BODIES)
@on_a_loop
async def test_missing_input_is_named(path: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(path, json={})
    param = next(iter(BODIES[path]))
    assert assert_error(answer, 400, "invalid_value", param) == f"{param} is missing"


@pytest.mark.parametrize("number", ["1e999", "NaN", "Infinity"])
@on_a_loop
async def test_numbers_that_are_not_finite_are_refused(number: str) -> None:
    body = f'{{"prompt": "a", "temperature": {number}}}'
    async with open_client(FakeEngine()) as client:
        assert_error(await client.post(TEXT, content=body), 400, "invalid_value", "temperature")


@on_a_loop
async def test_a_lone_surrogate_is_refused_with_its_place() -> None:
    body = b'{"prompt": "hi \\ud83d there"}'
    async with open_client(FakeEngine()) as client:
        message = assert_error(await client.post(TEXT, content=body), 400, "invalid_value")
    assert "line 1 column" in message


ODD_VALUES: list[Any] = [
    None, True, 0, -1, 1e308, 1 << 80, "", "\u0000", "x" * 5000, [], [[]], [None], {}, {"type": "text"}, [{}],
    {"1": 1}, [1, "a"], {"include_usage": {}}, [{"role": "user", "content": [[]]}],
]  # fmt: skip


@pytest.mark.parametrize("path", BODIES)
@on_a_loop
async def test_no_value_of_any_field_makes_the_server_fail(path: str) -> None:
    """Every field with every odd value, and mutilated bytes: an answer or a 400, never a 500."""
    wire = ChatCompletionRequest if path == CHAT else CompletionRequest
    dice = random.Random(7)
    raw = json.dumps({**BODIES[path], "stop": ["a"], "temperature": 0.5}).encode()
    bodies = [
        json.dumps({**BODIES[path], name if name != "prompts" else "prompt": value}).encode()
        for name in wire.model_fields
        for value in ODD_VALUES
    ]
    for _ in range(300):
        mutant = bytearray(raw)
        for _ in range(dice.randint(1, 4)):
            mutant[dice.randrange(len(mutant))] = dice.randrange(256)
        bodies.append(bytes(mutant[: dice.randint(1, len(mutant))]))
    async with open_client(FakeEngine()) as client:
        for body in bodies:
            answer = await client.post(path, content=body)
            assert answer.status_code in (200, 400, 404), (body, answer.text)


NEUTRAL: dict[str, Any] = {
    "tools": [],
    "tool_choice": "auto",
    "response_format": {"type": "text"},
    "stop": None,
    "temperature": None,
    "seed": None,
    "logit_bias": None,
    "n": None,
    "max_tokens": None,
    "stream_options": None,
    "user": "u1",
    "store": False,
    "metadata": {"k": "v"},
    "service_tier": "auto",
    "frobnicate": {"a": [1]},
}


@pytest.mark.parametrize("path", BODIES)
@on_a_loop
async def test_nulls_neutral_values_and_unknown_fields_are_no_error(path: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(path, json={**BODIES[path], **NEUTRAL})
    assert answer.status_code == 200, answer.text
