"""A key steers its own requests, and lifts none above its lane; the window's owner steers all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.api import Priority
from engine.runs import ParkNow, ParkUsage, Pin, ResumeNext, SetPriority
from fakes.http_driver import (
    CHAT,
    HELLO,
    AsgiCall,
    WatchedEngine,
    assert_error,
    make_app,
    on_a_loop,
)
from fakes.runs import make_run
from studio.models.server_keys import KeyPlan, Lane
from studio.models.server_settings import ServerSettings
from studio.server.parts import ServerParts
from studio.services.key_store import KeyStore

ACTIONS: dict[str, dict[str, Any] | None] = {
    "park": None,
    "resume": None,
    "pin": None,
    "unpin": None,
    "priority": {"priority": "background"},
}


class Desk:
    """A server with a request in flight of a key in each lane, of a program without one, and of the window."""

    def __init__(self, store: KeyStore) -> None:
        self.engine = WatchedEngine(auto=False)
        settings = ServerSettings(lets_local_in=True)
        self.app = make_app(self.engine, settings=settings, parts=ServerParts(keys=store))
        self.secrets = {
            lane.value: store.create(KeyPlan(name=lane.value, lane=lane))[1] for lane in Lane
        }
        self.runs = {"window": "chat-1"}
        self._calls: list[AsgiCall] = []

    async def open(self) -> None:
        for who in (*self.secrets, ""):
            call = AsgiCall(self.app, CHAT, HELLO, self.headers(who))
            self._calls.append(call)
            while len(self.engine.requests) < len(self._calls):
                await call.pause()
            self.runs[who] = list(self.engine.requests)[-1]
        runs = [make_run(name) for name in self.runs.values()]
        self.engine.publish(*runs, parks=ParkUsage(budget_bytes=1 << 30))

    async def close(self) -> None:
        for call in self._calls:
            await call.leave()

    def headers(self, who: str) -> dict[str, str]:
        return {"x-api-key": self.secrets[who]} if who else {}

    async def steer(
        self, who: str, whose: str, action: str, body: dict[str, Any] | None = None
    ) -> httpx.Response:
        transport = httpx.ASGITransport(self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            path = f"/v1/runs/{self.runs[whose]}/{action}"
            return await client.post(path, json=body or ACTIONS[action], headers=self.headers(who))


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    return KeyStore(tmp_path / "keys.json")


@pytest.mark.parametrize("action", ACTIONS)
@on_a_loop
async def test_a_key_steers_its_own_requests_alone(store: KeyStore, action: str) -> None:
    desk = Desk(store)
    await desk.open()
    for whose in ("window", "", "normal", "background"):
        answer = await desk.steer("interactive", whose, action)
        words = assert_error(answer, 403, "run_not_yours")
        assert "'interactive'" in words
    assert desk.engine.commands == []
    assert (await desk.steer("interactive", "interactive", action)).status_code == 202
    assert len(desk.engine.commands) == 1
    await desk.close()


@pytest.mark.parametrize("action", ACTIONS)
@on_a_loop
async def test_whoever_needs_no_key_steers_everybodys(store: KeyStore, action: str) -> None:
    desk = Desk(store)
    await desk.open()
    for whose in desk.runs:
        assert (await desk.steer("", whose, action)).status_code == 202
    assert len(desk.engine.commands) == len(desk.runs)
    await desk.close()


@pytest.mark.parametrize("lane", list(Lane))
@on_a_loop
async def test_no_priority_is_above_the_keys_lane(store: KeyStore, lane: Lane) -> None:
    desk = Desk(store)
    await desk.open()
    for priority in Priority:
        body = {"priority": priority.name.lower()}
        answer = await desk.steer(lane.value, lane.value, "priority", body)
        if priority < lane.priority:
            words = assert_error(answer, 403, "above_lane")
            assert f"lane of the key '{lane.value}' is {lane.value}" in words
        else:
            assert answer.status_code == 202
    name = desk.runs[lane.value]
    assert desk.engine.commands == [
        SetPriority(request_id=name, priority=each) for each in Priority if each >= lane.priority
    ]
    await desk.close()


@pytest.mark.parametrize("lane", [Lane.NORMAL, Lane.BACKGROUND])
@on_a_loop
async def test_a_lane_that_others_go_before_neither_pins_nor_heads_the_line(
    store: KeyStore, lane: Lane
) -> None:
    desk = Desk(store)
    await desk.open()
    assert_error(await desk.steer(lane.value, lane.value, "pin"), 403, "above_lane")
    for action in ("park", "resume", "unpin"):
        assert (await desk.steer(lane.value, lane.value, action)).status_code == 202
    name = desk.runs[lane.value]
    assert desk.engine.commands == [
        ParkNow(request_id=name),
        ResumeNext(request_id=name, goes_first=False),
        Pin(request_id=name, is_pinned=False),
    ]
    await desk.close()


@on_a_loop
async def test_the_best_lane_pins_and_heads_the_line(store: KeyStore) -> None:
    desk = Desk(store)
    await desk.open()
    for action in ("pin", "resume"):
        assert (await desk.steer("interactive", "interactive", action)).status_code == 202
    name = desk.runs["interactive"]
    assert desk.engine.commands == [Pin(request_id=name), ResumeNext(request_id=name)]
    await desk.close()


@on_a_loop
async def test_what_has_ended_is_nobodys(store: KeyStore) -> None:
    desk = Desk(store)
    await desk.open()
    await desk.close()
    answer = await desk.steer("normal", "normal", "unpin")
    assert_error(answer, 403, "run_not_yours")
