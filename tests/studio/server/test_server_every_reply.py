"""What every route that generates has in common: rows, lanes, shares, waiting, parking, signs of life, steering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.api import FinishReason, Priority
from engine.runs import ParkUsage, RunState
from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    CHAT,
    MESSAGES,
    REPLIES,
    RESPONSES,
    TEXT,
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
from studio.server.sse import StreamTimings
from studio.services.key_store import KeyStore

PATHS = [CHAT, TEXT, MESSAGES, RESPONSES]
MOST_TOKENS = {RESPONSES: "max_output_tokens"}
LIVELY = StreamTimings(open_after_s=0.001, keepalive_s=0.001, parked_keepalive_s=0.001)


async def begin(
    engine: WatchedEngine,
    path: str,
    *,
    parts: ServerParts | None = None,
    timings: StreamTimings | None = None,
    headers: dict[str, str] | None = None,
    **fields: Any,
) -> tuple[AsgiCall, str]:
    """A call whose request has reached the engine, which knows none before."""
    app = make_app(engine, timings=timings, parts=parts)
    call = AsgiCall(app, path, {**REPLIES[path], **fields}, headers)
    while not engine.requests:
        await call.pause()
    return call, next(iter(engine.requests))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_a_request_is_a_row_with_its_words_if_they_are_kept(path: str, stream: bool) -> None:
    log = RequestLog()
    parts, settings = ServerParts(log=log), ServerSettings(keeps_prompts=True)
    async with open_client(FakeEngine(), settings=settings, parts=parts) as client:
        await client.post(path, json={**REPLIES[path], "stream": stream})
        await client.post(path, json={**REPLIES[path], "temperature": -1})
    answered, refused = log.rows
    assert (answered.path, answered.status, answered.state) == (path, 200, RequestState.DONE)
    assert (answered.prompt_tokens, answered.completion_tokens) == (5, 3)
    assert "Say hello." in answered.prompt or path == TEXT
    assert len(answered.run_ids) == 1
    assert (refused.status, refused.state) == (400, RequestState.REFUSED)


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_a_key_gives_its_lane_and_its_most_at_once(path: str, tmp_path: Path) -> None:
    engine, keys = WatchedEngine(auto=False), KeyStore(tmp_path / "keys.json")
    _, secret = keys.create(KeyPlan(name="agent", lane=Lane.BACKGROUND, max_requests=1))
    app = make_app(engine, parts=ServerParts(keys=keys))
    first = AsgiCall(app, path, REPLIES[path], {"x-api-key": secret})
    while not engine.requests:
        await first.pause()
    second = AsgiCall(app, path, REPLIES[path], {"x-api-key": secret})
    await second.finished()
    assert (second.status, second.headers["retry-after"]) == (429, "2")
    assert "rate_limit_error" in second.text
    (name,) = engine.requests
    assert engine.requests[name].priority is Priority.BACKGROUND
    engine.finish(name)
    await first.finished()
    assert first.status == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_a_key_waits_for_its_share_and_no_longer_than_it_is_willing_to(
    path: str, stream: bool, tmp_path: Path
) -> None:
    engine, keys, log = WatchedEngine(auto=False), KeyStore(tmp_path / "keys.json"), RequestLog()
    _, secret = keys.create(KeyPlan(name="agent", share_percent=50))
    app = make_app(engine, parts=ServerParts(keys=keys, log=log))
    body = {**REPLIES[path], MOST_TOKENS.get(path, "max_tokens"): 600, "stream": stream}
    first = AsgiCall(app, path, body, {"x-api-key": secret})
    while not engine.requests:
        await first.pause()
    patient = AsgiCall(app, path, body, {"x-api-key": secret})
    while log.rows[-1].state is not RequestState.HELD_BACK:
        await patient.pause()
    hasty = AsgiCall(app, path, {**body, "max_wait": 0}, {"x-api-key": secret})
    await hasty.finished()
    assert hasty.status == (529 if path == MESSAGES else 503)
    assert "holds its share" in hasty.text
    assert len(engine.requests) == 1
    engine.finish(next(iter(engine.alive)))
    await first.finished()
    while len(engine.requests) < 2:
        await patient.pause()
    engine.finish(next(iter(engine.alive)))
    await patient.finished()
    assert patient.status == 200


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
@on_a_loop
async def test_the_tools_offered_count_as_what_a_request_takes(path: str, tmp_path: Path) -> None:
    engine, keys, log = WatchedEngine(auto=False), KeyStore(tmp_path / "keys.json"), RequestLog()
    _, secret = keys.create(KeyPlan(name="agent", share_percent=50))
    app = make_app(engine, parts=ServerParts(keys=keys, log=log))
    first = AsgiCall(app, path, REPLIES[path], {"x-api-key": secret})
    while not engine.requests:
        await first.pause()
    tool = {"name": "look", "description": "x" * 4400, "input_schema": {}, "type": "function"}
    if path == MESSAGES:
        del tool["type"]
    second = AsgiCall(app, path, {**REPLIES[path], "tools": [tool]}, {"x-api-key": secret})
    while log.rows[-1].state is not RequestState.HELD_BACK:
        await second.pause()
    await second.leave()
    engine.finish(next(iter(engine.alive)))
    await first.finished()


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_the_engine_is_told_how_long_it_may_wait(path: str) -> None:
    engine = WatchedEngine(auto=False)
    call, name = await begin(engine, path, max_wait=2.5)
    assert engine.requests[name].max_wait_s == 2.5
    engine.finish(name)
    await call.finished()
    async with open_client(engine) as client:
        answer = await client.post(path, json={**REPLIES[path], "max_wait": -1})
    assert_error(answer, 400, "invalid_value", "max_wait")


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_a_parked_stream_speaks_in_comments_and_the_end_has_the_record(path: str) -> None:
    engine = WatchedEngine(auto=False)
    engine.publish(parks=ParkUsage(budget_bytes=1 << 20))
    call, name = await begin(engine, path, timings=LIVELY, stream=True)
    engine.park(name)
    await call.until(lambda call: ": preempt-keepalive\n\n" in call.text)
    engine.restore(name, recomputed_tokens=3)
    await call.until(lambda call: ": resumed\n\n: recomputed\n\n" in call.text)
    engine.finish(name)
    await call.finished()
    assert call.text.index(": preempted\n\n") < call.text.index(": preempt-keepalive")
    records = [chunk.get("response", chunk).get("preempt") for chunk in call.chunks]
    assert [record for record in records if record] == [{"parks": 0, "recomputes": 0}]


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_nothing_but_events_for_those_who_asked_for_deltas(path: str) -> None:
    engine = WatchedEngine(auto=False)
    heartbeat = {"x-layby-heartbeat": "delta"}
    call, name = await begin(engine, path, timings=LIVELY, headers=heartbeat, stream=True)
    engine.park(name)
    await call.until(lambda call: len(call.chunks) >= 5)
    engine.restore(name)
    engine.finish(name)
    await call.finished()
    assert not [line for line in call.text.split("\n") if line.startswith(":")]
    async with open_client(engine) as client:
        body, wrong = {**REPLIES[path], "stream": True}, {"x-layby-heartbeat": "morse"}
        answer = await client.post(path, json=body, headers=wrong)
    assert_error(answer, 400, "invalid_value", "x-layby-heartbeat")


@pytest.mark.parametrize("path", PATHS)
@on_a_loop
async def test_the_id_of_a_reply_steers_its_run(path: str) -> None:
    engine = WatchedEngine(auto=False)
    call, name = await begin(engine, path, stream=True)
    engine.say(name, "Hi")
    await call.until(lambda call: call.writes)
    first = call.chunks[0]
    reply_id = first.get("response", first.get("message", first))["id"]
    engine.publish(make_run(name, RunState.WRITING))
    async with open_client(engine) as client:
        shown = (await client.get(f"/v1/runs/{reply_id}")).json()
    assert [run["id"] for run in shown["data"]] == [name]
    engine.finish(name)
    await call.finished()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("has_spoken", [True, False])
@on_a_loop
async def test_a_stream_stopped_from_elsewhere_is_an_error(path: str, has_spoken: bool) -> None:
    engine = WatchedEngine(auto=False)
    call, name = await begin(engine, path, stream=True)
    if has_spoken:
        engine.say(name, "Hel")
        await call.until(lambda call: call.writes)
    engine.finish(name, FinishReason.ABORTED)
    await call.finished()
    assert call.status == (200 if has_spoken else 503)
    assert "stopped from Layby" in call.text.rstrip().rsplit("\n\n", 1)[-1]
    assert call.is_complete


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_a_client_that_leaves_ends_its_request(path: str, stream: bool) -> None:
    engine, log = WatchedEngine(auto=False), RequestLog()
    call, name = await begin(engine, path, parts=ServerParts(log=log), stream=stream)
    await call.leave()
    assert engine.aborted == [name]
    assert log.rows[-1].state is RequestState.LEFT
