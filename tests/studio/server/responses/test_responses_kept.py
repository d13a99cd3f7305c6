"""Responses that are kept: gone on from, shown, deleted, and forgotten within bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.api import Chat, FinishReason, Prompt, ToolCallDelta
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    RESPONSES,
    AsgiCall,
    WatchedEngine,
    assert_error,
    make_app,
    on_a_loop,
    open_client,
)
from studio.models.server_keys import KeyPlan
from studio.server.parts import ServerParts
from studio.server.responses.items import read_items
from studio.server.responses.store import KeptResponse, ResponseStore
from studio.services.key_store import KeyStore


async def respond(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post(RESPONSES, json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def heard(engine: FakeEngine) -> list[tuple[str, str]]:
    """The newest conversation."""
    prompt = list(engine.requests.values())[-1].prompt
    assert isinstance(prompt, Chat)
    return [(turn.role, turn.content) for turn in prompt.messages]


@on_a_loop
async def test_the_next_one_goes_on_from_all_that_was_said_but_not_from_the_instructions() -> None:
    engine = FakeEngine(reply="Yes.")
    async with open_client(engine) as client:
        first = await respond(client, input="One", instructions="Be brief.")
        second = await respond(client, input="Two", previous_response_id=first["id"])
        third = await respond(
            client, input="Three", previous_response_id=second["id"], instructions="Be long."
        )
    assert heard(engine) == [
        ("system", "Be long."),
        *(("user", "One"), ("assistant", "Yes.")),
        *(("user", "Two"), ("assistant", "Yes.")),
        ("user", "Three"),
    ]
    assert third["previous_response_id"] == second["id"]


@on_a_loop
async def test_a_stream_is_kept_and_a_call_gets_its_result() -> None:
    engine = WatchedEngine(auto=False)
    app = make_app(engine)
    call = AsgiCall(app, RESPONSES, {"input": "Hi", "stream": True})
    while not engine.requests:
        await call.pause()
    (name,) = engine.requests
    engine.write(name, call=ToolCallDelta(index=0, call_id="call_1", name="look", arguments="{}"))
    engine.finish(name, FinishReason.TOOL_CALLS)
    await call.finished()
    answer = {"type": "function_call_output", "call_id": "call_1", "output": "clouds"}
    again = AsgiCall(app, RESPONSES, {"previous_response_id": name[:-2], "input": [answer]})
    while len(engine.requests) < 2:
        await again.pause()
    prompt = list(engine.requests.values())[-1].prompt
    assert isinstance(prompt, Chat)
    assert [turn.role for turn in prompt.messages] == ["user", "assistant", "tool"]
    assert prompt.messages[1].tool_calls[0].call_id == prompt.messages[2].tool_call_id == "call_1"
    await again.leave()


@on_a_loop
async def test_a_response_is_shown_with_its_input_until_it_is_deleted() -> None:
    async with open_client(FakeEngine()) as client:
        items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        first = await respond(client, input=[*items, {"id": "msg_c", **items[0]}])
        path = f"{RESPONSES}/{first['id']}"
        assert (await client.get(path)).json() == first
        listed = (await client.get(f"{path}/input_items")).json()
        assert listed["object"] == "list"
        assert [item["content"][0]["text"] for item in listed["data"]] == ["a", "b", "a"]
        assert (listed["first_id"], listed["has_more"]) == ("msg_c", False)
        page = (await client.get(f"{path}/input_items?limit=1&order=asc")).json()
        assert [item["role"] for item in page["data"]] == ["user"]
        assert page["has_more"]
        rest = await client.get(f"{path}/input_items?order=asc&after={page['last_id']}")
        assert [item["role"] for item in rest.json()["data"]] == ["assistant", "user"]
        for query, param in (("limit=0", "limit"), ("order=up", "order"), ("after=x", "after")):
            wrong = await client.get(f"{path}/input_items?{query}")
            assert_error(wrong, 400, "invalid_value", param)
        assert_error(await client.get(f"{path}?stream=true"), 400, "invalid_value", "stream")
        gone = await client.delete(path)
        assert gone.json() == {"id": first["id"], "object": "response", "deleted": True}
        for method, where in (("GET", path), ("DELETE", path), ("GET", f"{path}/input_items")):
            assert_error(await client.request(method, where), 404, "response_not_found")


@on_a_loop
async def test_what_is_not_kept_cannot_be_gone_on_from() -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        first = await respond(client, input="One", store=False)
        for name in (first["id"], "resp_doesnotexist"):
            answer = await client.post(RESPONSES, json={"input": "x", "previous_response_id": name})
            code, param = "previous_response_not_found", "previous_response_id"
            assert name in assert_error(answer, 400, code, param)
    assert len(engine.requests) == 1


@on_a_loop
async def test_items_of_kept_responses_can_be_referred_to() -> None:
    engine = FakeEngine(reply="Yes.")
    async with open_client(engine) as client:
        first = await respond(client, input="One")
        items = [
            {"role": "user", "content": "One"},
            {"type": "item_reference", "id": first["output"][0]["id"]},
            {"role": "user", "content": "Two"},
        ]
        await respond(client, input=items)
        short = {"id": first["output"][0]["id"]}
        await respond(client, input=[items[0], short, items[2]])
    assert heard(engine) == [("user", "One"), ("assistant", "Yes."), ("user", "Two")]


@on_a_loop
async def test_a_key_sees_only_its_own(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.json")
    secrets = [keys.create(KeyPlan(name=name))[1] for name in ("a", "b")]
    async with open_client(FakeEngine(), parts=ServerParts(keys=keys)) as client:
        client.headers["authorization"] = f"Bearer {secrets[0]}"
        first = await respond(client, input="One")
        path = f"{RESPONSES}/{first['id']}"
        client.headers["authorization"] = f"Bearer {secrets[1]}"
        assert_error(await client.get(path), 404, "response_not_found")
        assert_error(await client.delete(path), 404, "response_not_found")
        client.headers["authorization"] = f"Bearer {secrets[0]}"
        assert (await client.get(path)).status_code == 200


@on_a_loop
async def test_what_was_asked_takes_room_too() -> None:
    async with open_client(FakeEngine()) as client:
        found = [await respond(client, input="a", instructions="x" * (6 << 20)) for _ in range(3)]
        paths = [f"{RESPONSES}/{response['id']}" for response in found]
        assert_error(await client.get(paths[0]), 404, "response_not_found")
        assert [(await client.get(path)).status_code for path in paths[1:]] == [200, 200]


class SmallWindow(FakeEngine):
    """Has room for so many words, and counts them."""

    def count_tokens(self, prompt: Prompt) -> int | None:
        count = super().count_tokens(prompt)
        return None if count is None else count + 2000


@on_a_loop
async def test_truncation_drops_the_oldest_turns_and_keeps_the_instructions() -> None:
    engine = SmallWindow()
    turns = [{"role": "developer", "content": "Be brief."}]
    for number in range(30):
        turns += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"answer {number}"},
        ]
    turns.append({"role": "user", "content": "last question"})
    async with open_client(engine) as client:
        await respond(client, input=turns, truncation="auto", max_output_tokens=30)
    found = heard(engine)
    assert found[0] == ("system", "Be brief.")
    assert found[1][0] == "user"
    assert found[-1] == ("user", "last question")
    words = sum(len(text.split()) for _, text in found)
    assert words + 2000 + 30 <= 2048 < words + 4 + 2000 + 30


@on_a_loop
async def test_without_truncation_everything_is_sent() -> None:
    engine = SmallWindow()
    turns = [{"role": "user", "content": "a b c d"}, {"role": "assistant", "content": "e"}] * 20
    async with open_client(engine) as client:
        await respond(client, input=turns)
        await respond(client, input=[turns[0]], truncation="auto")
        assert heard(engine) == [("user", "a b c d")]
    assert sum(len(request.prompt.messages) for request in engine.requests.values()) == 41  # type: ignore[union-attr]


def kept(name: str, size: int = 1) -> KeptResponse:
    item = {"role": "user", "content": "x", "id": f"msg_{name}"}
    return KeptResponse(
        response={"id": name}, before=(), inputs=read_items([item]), outputs=(), size_bytes=size
    )


def test_the_least_recently_used_make_room_for_the_newest() -> None:
    store = ResponseStore(max_responses=12, max_bytes=1000)
    for name in "abc":
        store.put("k", kept(name))
    assert store.get("k", "a") is not None
    store.put("k", kept("d"))
    assert [name for name in "abcd" if store.get("k", name)] == ["a", "c", "d"]
    assert [name for name in "abcd" if store.find_item("k", f"msg_{name}")] == ["a", "c", "d"]
    assert store.find_item("l", "msg_a") is None


def test_a_key_has_no_more_than_its_share_of_bytes_and_all_of_them_no_more_than_there_are() -> None:
    store = ResponseStore(max_responses=100, max_bytes=1000)
    store.put("k", kept("large", 251))
    assert store.get("k", "large") is None
    for key in "klmno":
        for number in range(3):
            store.put(key, kept(str(number), 100))
    assert [str(n) for n in range(3) if store.get("o", str(n))] == ["1", "2"]
    found = [(key, n) for key in "klmno" for n in range(3) if store.get(key, str(n))]
    assert len(found) == 10
    store.put("p", kept("0", 100))
    assert store.get("k", "1") is None
    assert store.get("p", "0") is not None


def test_the_same_one_again_takes_its_room_once() -> None:
    store = ResponseStore(max_responses=100, max_bytes=1000)
    for _ in range(20):
        store.put("k", kept("a", 100))
    store.put("k", kept("b", 100))
    assert store.get("k", "a") is not None


@pytest.mark.parametrize("reason", [FinishReason.ABORTED, None])
@on_a_loop
async def test_what_has_not_ended_well_is_not_kept(reason: FinishReason | None) -> None:
    engine = WatchedEngine(auto=False)
    app = make_app(engine)
    call = AsgiCall(app, RESPONSES, {"input": "Hi", "stream": True})
    while not engine.requests:
        await call.pause()
    (name,) = engine.requests
    engine.say(name, "Hel")
    if reason is None:
        await call.leave()
    else:
        engine.finish(name, reason)
        await call.finished()
    again = AsgiCall(app, RESPONSES, {"previous_response_id": name[:-2], "input": "x"})
    await again.finished()
    assert json.loads(again.text)["error"]["code"] == "previous_response_not_found"
