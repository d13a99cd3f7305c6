"""A chat that ends with the assistant's message: the reply goes on with it, or begins a turn."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api import Chat
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    CHAT,
    MESSAGES,
    OLLAMA_CHAT,
    REPLIES,
    RESPONSES,
    TEXT,
    assert_error,
    on_a_loop,
    open_client,
)

USER = {"role": "user", "content": "Hello"}
BEGUN = {"role": "assistant", "content": "The"}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}],
}
BOTH = "continue_final_message"


@pytest.mark.parametrize(
    ("fields", "continues"),
    [
        ({}, True),
        ({"continue_final_message": True}, True),
        ({"continue_final_message": True, "add_generation_prompt": False}, True),
        ({"continue_final_message": False}, False),
        ({"continue_final_message": False, "add_generation_prompt": True}, False),
        ({"add_generation_prompt": True}, False),
        ({"continue_final_message": None, "add_generation_prompt": None}, True),
    ],
)
@on_a_loop
async def test_the_last_message_of_an_assistant_is_gone_on_with_unless_told_otherwise(
    fields: dict[str, Any], continues: bool
) -> None:
    assert await prompt_of({"messages": [USER, BEGUN], **fields}) is continues


@pytest.mark.parametrize("messages", [[USER], [USER, CALLED], [BEGUN, USER]])
@on_a_loop
async def test_nothing_else_is_gone_on_with(messages: list[dict[str, Any]]) -> None:
    assert await prompt_of({"messages": messages}) is False


@pytest.mark.parametrize("path", [CHAT, MESSAGES, OLLAMA_CHAT])
@pytest.mark.parametrize("messages", [[USER, BEGUN], [BEGUN]])
@on_a_loop
async def test_all_routes_for_chats_go_on_alike(path: str, messages: list[dict[str, Any]]) -> None:
    assert await prompt_of({**REPLIES[path], "messages": messages}, path) is True


@pytest.mark.parametrize("items", [[USER, BEGUN], [BEGUN]])
@on_a_loop
async def test_responses_begin_a_turn_as_openais_do(items: list[dict[str, Any]]) -> None:
    assert await prompt_of({"input": items}, RESPONSES) is False


async def prompt_of(body: dict[str, Any], path: str = CHAT) -> bool:
    engine = FakeEngine()
    async with open_client(engine) as client:
        answer = await client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    (request,) = engine.requests.values()
    assert isinstance(request.prompt, Chat)
    return request.prompt.continues


@pytest.mark.parametrize("path", [CHAT, "/apply-template"])
@pytest.mark.parametrize(
    ("messages", "fields", "param"),
    [
        ([USER, BEGUN], {"continue_final_message": True, "add_generation_prompt": True}, BOTH),
        ([USER], {"continue_final_message": True}, BOTH),
        ([USER, CALLED], {"continue_final_message": True}, BOTH),
        ([USER, BEGUN], {"add_generation_prompt": False}, "add_generation_prompt"),
        (
            [USER, BEGUN],
            {"continue_final_message": False, "add_generation_prompt": False},
            "add_generation_prompt",
        ),
        ([USER, BEGUN], {"continue_final_message": "yes"}, BOTH),
    ],
)
@on_a_loop
async def test_what_contradicts_is_refused_by_name(
    path: str, messages: list[Any], fields: dict[str, Any], param: str
) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        answer = await client.post(path, json={"messages": messages, **fields})
    assert_error(answer, 400, "invalid_value", param)
    assert not engine.requests


@on_a_loop
async def test_a_text_completion_has_no_last_message() -> None:
    async with open_client(FakeEngine()) as client:
        body = {"prompt": "x", "continue_final_message": True}
        assert_error(await client.post(TEXT, json=body), 400, "invalid_value", BOTH)
