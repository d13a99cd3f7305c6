"""The lane that a request asks for in its body."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api import Priority
from fakes.fake_engine import FakeEngine
from fakes.http_driver import CHAT, HELLO, REPLIES, assert_error, on_a_loop, open_client
from studio.models.server_keys import KeyPlan, Lane
from studio.models.server_settings import ServerSettings
from studio.server.openapi.document import build_document
from studio.server.openapi.entries import OPERATIONS
from studio.server.parts import ServerParts
from studio.services.key_store import KeyStore


@pytest.mark.parametrize("path", list(REPLIES))
@on_a_loop
async def test_batch_is_what_some_call_background(path: str) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        answer = await client.post(path, json={**REPLIES[path], "priority": "batch"})
    assert answer.status_code == 200
    assert {each.priority for each in engine.requests.values()} == {Priority.BACKGROUND}


@pytest.mark.parametrize("path", list(REPLIES))
@on_a_loop
async def test_every_generating_route_takes_a_priority(path: str) -> None:
    for priority in Priority:
        engine = FakeEngine()
        async with open_client(engine) as client:
            body = {**REPLIES[path], "priority": priority.name.lower()}
            answer = await client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        assert {each.priority for each in engine.requests.values()} == {priority}


@pytest.mark.parametrize("path", list(REPLIES))
@on_a_loop
async def test_a_wrong_priority_is_refused_by_name(path: str) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        for wrong in ("x", 5, True, ["normal"], ""):
            answer = await client.post(path, json={**REPLIES[path], "priority": wrong})
            assert answer.status_code == 400, answer.text
            assert "priority is" in answer.text
            assert "interactive, normal, background" in answer.text
    assert not engine.requests


@pytest.mark.parametrize(
    ("lane", "asked", "got"),
    [
        (Lane.BACKGROUND, "interactive", Priority.BACKGROUND),
        (Lane.NORMAL, "interactive", Priority.NORMAL),
        (Lane.NORMAL, "background", Priority.BACKGROUND),
        (Lane.INTERACTIVE, "normal", Priority.NORMAL),
        (Lane.INTERACTIVE, None, Priority.INTERACTIVE),
    ],
)
@on_a_loop
async def test_a_keys_lane_is_the_best_that_its_requests_get(
    tmp_path: Path, lane: Lane, asked: str | None, got: Priority
) -> None:
    engine, store = FakeEngine(), KeyStore(tmp_path / "keys.json")
    _, secret = store.create(KeyPlan(name="editor", lane=lane))
    async with open_client(engine, parts=ServerParts(keys=store)) as client:
        answer = await client.post(
            CHAT, json={**HELLO, "priority": asked}, headers={"x-api-key": secret}
        )
    assert answer.status_code == 200, answer.text
    assert [each.priority for each in engine.requests.values()] == [got]


@on_a_loop
async def test_the_key_of_the_server_itself_may_ask_for_any_lane() -> None:
    engine = FakeEngine()
    async with open_client(engine, settings=ServerSettings(api_key="hunter2")) as client:
        body = {**HELLO, "priority": "interactive"}
        assert_error(await client.post(CHAT, json=body), 401, "invalid_api_key")
        answer = await client.post(CHAT, json=body, headers={"x-api-key": "hunter2"})
    assert answer.status_code == 200
    assert [each.priority for each in engine.requests.values()] == [Priority.INTERACTIVE]


def test_the_document_of_the_api_names_the_lanes() -> None:
    schemas = build_document(OPERATIONS, "1")["components"]["schemas"]
    told = {name for name, each in schemas.items() if "priority" in each.get("properties", {})}
    assert {"ChatCompletionRequest", "CompletionRequest", "MessagesRequest"} <= told
    assert {"ResponsesRequest", "ChatRequest", "GenerateRequest", "LlamaCompletionRequest"} <= told
    field = schemas["ChatCompletionRequest"]["properties"]["priority"]
    assert field["enum"] == ["interactive", "normal", "background", "batch", None]
