"""Keys over HTTP: who is let in, in which lane, how many at once, and how much of the pool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import Priority
from engine.runs import RunState
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    CHAT,
    HELLO,
    AsgiCall,
    WatchedEngine,
    assert_error,
    make_app,
    on_a_loop,
    open_client,
)
from fakes.runs import make_run
from studio.models.request_log import RequestLog, RequestState
from studio.models.server_keys import KeyPlan, Lane
from studio.models.server_settings import ServerSettings
from studio.server.parts import ServerParts
from studio.services.key_store import KeyStore

LOCAL = ServerSettings()
MASTER = ServerSettings(api_key="master")
OPEN = ServerSettings(lets_local_in=True)
PUBLIC = ServerSettings(host="0.0.0.0")


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    return KeyStore(tmp_path / "keys.json")


@pytest.mark.parametrize("lane", list(Lane))
@on_a_loop
async def test_a_keys_lane_is_the_priority_of_its_requests(store: KeyStore, lane: Lane) -> None:
    engine = FakeEngine()
    _, secret = store.create(KeyPlan(name="editor", lane=lane))
    async with open_client(engine, parts=ServerParts(keys=store)) as client:
        first = await client.post(CHAT, json=HELLO, headers=bearer(secret))
        second = await client.post(CHAT, json={**HELLO, "n": 2}, headers={"x-api-key": secret})
    assert (first.status_code, second.status_code) == (200, 200)
    assert {request.priority for request in engine.requests.values()} == {Priority[lane.name]}


@pytest.mark.parametrize(
    ("settings", "headers", "status"),
    [
        (LOCAL, {}, 401),
        (LOCAL, bearer("wrong"), 401),
        (MASTER, bearer("master"), 200),
        (MASTER, bearer("wrong"), 401),
        (OPEN, {}, 200),
        (OPEN, bearer("none"), 200),
        (PUBLIC, bearer("none"), 401),
    ],
)
@on_a_loop
async def test_once_there_is_a_key_one_is_needed_unless_this_machine_is_let_in(
    store: KeyStore, settings: ServerSettings, headers: dict[str, str], status: int
) -> None:
    store.create(KeyPlan(name="editor"))
    async with open_client(FakeEngine(), settings=settings, parts=ServerParts(keys=store)) as it:
        assert (await it.post(CHAT, json=HELLO, headers=headers)).status_code == status
        assert (await it.get("/health", headers={})).status_code == 200


@on_a_loop
async def test_revoking_the_last_key_of_a_public_server_does_not_open_it(store: KeyStore) -> None:
    key, secret = store.create(KeyPlan(name="editor"))
    engine = FakeEngine()
    async with open_client(engine, settings=PUBLIC, parts=ServerParts(keys=store)) as client:
        assert (await client.get("/v1/models", headers=bearer(secret))).status_code == 200
        store.revoke(key.key_id)
        assert_error(await client.get("/v1/models", headers=bearer(secret)), 401, "invalid_api_key")
        assert_error(await client.get("/v1/models"), 401, "invalid_api_key")


@on_a_loop
async def test_one_request_too_many_is_told_the_keys_limit_and_when_to_come_back(
    store: KeyStore,
) -> None:
    engine = WatchedEngine(auto=False)
    _, secret = store.create(KeyPlan(name="editor", max_requests=1))
    _, other = store.create(KeyPlan(name="other", max_requests=1))
    app = make_app(engine, parts=ServerParts(keys=store))
    first = AsgiCall(app, CHAT, HELLO, bearer(secret))
    while not engine.requests:
        await first.pause()
    second = AsgiCall(app, CHAT, HELLO, bearer(secret))
    await second.finished()
    assert second.status == 429
    assert int(second.headers["retry-after"]) >= 1
    assert "'editor' may have 1 requests at once" in second.text
    third = AsgiCall(app, CHAT, HELLO, bearer(other))
    while len(engine.requests) < 2:
        await third.pause()
    for request_id in list(engine.alive):
        engine.finish(request_id)
    await first.finished()
    await third.finished()
    assert (first.status, third.status) == (200, 200)
    again = AsgiCall(app, CHAT, HELLO, bearer(secret))
    while len(engine.requests) < 3:
        await again.pause()
    engine.finish(list(engine.alive)[-1])
    await again.finished()
    assert again.status == 200


@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_a_key_that_holds_its_share_waits_for_it_and_others_do_not(
    store: KeyStore, *, stream: bool
) -> None:
    engine, log = WatchedEngine(auto=False), RequestLog()
    _, secret = store.create(KeyPlan(name="agent", share_percent=50))
    app = make_app(engine, parts=ServerParts(keys=store, log=log))
    ask = {**HELLO, "max_tokens": 600, "stream": stream}  # the fake's pool has 2,048 tokens
    first = AsgiCall(app, CHAT, ask, bearer(secret))
    while len(engine.requests) < 1:
        await first.pause()
    second = AsgiCall(app, CHAT, ask, bearer(secret))
    while log.rows[-1].state is not RequestState.HELD_BACK:
        await second.pause()
    assert len(engine.requests) == 1
    assert [row.client for row in log.rows] == ["agent", "agent"]
    engine.finish(next(iter(engine.alive)))
    await first.finished()
    while len(engine.requests) < 2:
        await second.pause()
    assert log.rows[-1].state is RequestState.RUNNING
    engine.finish(next(iter(engine.alive)))
    await second.finished()
    assert (first.status, second.status) == (200, 200)


@on_a_loop
async def test_what_a_request_really_holds_counts_where_it_is_more(store: KeyStore) -> None:
    engine, log = WatchedEngine(auto=False), RequestLog()
    _, secret = store.create(KeyPlan(name="agent", share_percent=50))
    app = make_app(engine, parts=ServerParts(keys=store, log=log))
    small = {**HELLO, "max_tokens": 10}
    first = AsgiCall(app, CHAT, small, bearer(secret))
    while len(engine.requests) < 1:
        await first.pause()
    run = make_run(next(iter(engine.requests)), RunState.WRITING)
    engine.publish(replace(run, held_tokens=1200))
    second = AsgiCall(app, CHAT, small, bearer(secret))
    while log.rows[-1].state is not RequestState.HELD_BACK:
        await second.pause()
    await second.leave()
    assert log.rows[-1].state is RequestState.LEFT
    engine.finish(next(iter(engine.alive)))
    await first.finished()
    assert len(engine.requests) == 1


@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_waiting_for_the_share_counts_as_waiting(store: KeyStore, *, stream: bool) -> None:
    engine = WatchedEngine(auto=False)
    _, secret = store.create(KeyPlan(name="agent", share_percent=1))
    app = make_app(engine, parts=ServerParts(keys=store))
    first = AsgiCall(app, CHAT, HELLO, bearer(secret))
    while len(engine.requests) < 1:
        await first.pause()
    second = AsgiCall(
        app, CHAT, {**HELLO, "max_tokens": 50, "max_wait": 0, "stream": stream}, bearer(secret)
    )
    await second.finished()
    assert second.status == 503
    assert "waited_too_long" in second.text
    engine.finish(next(iter(engine.alive)))
    await first.finished()


@pytest.mark.parametrize("origin", ["https://app.example", "HTTPS://App.Example"])
@on_a_loop
async def test_listed_pages_may_use_the_server_and_others_not(origin: str) -> None:
    settings = ServerSettings(cors_origins=("https://app.example",))
    async with open_client(FakeEngine(), settings=settings) as client:
        mine = await client.post(CHAT, json=HELLO, headers={"origin": origin})
        other = await client.post(CHAT, json=HELLO, headers={"origin": "https://b.example"})
    assert mine.status_code == 200
    assert_error(other, 403, "origin_not_allowed")


def test_what_is_no_origin_is_refused() -> None:
    with pytest.raises(ValueError, match="is no origin; give scheme and name"):
        ServerSettings(cors_origins=("app.example/page",))
