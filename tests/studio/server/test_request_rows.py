"""A row for each request: what it was, how it ended, and no prompt unless that was asked for."""

from __future__ import annotations

import pytest

from fakes.fake_engine import FakeEngine
from fakes.http_driver import CHAT, HELLO, AsgiCall, WatchedEngine, make_app, on_a_loop, open_client
from studio.models.request_log import MOST_ROWS, RequestLog, RequestRow, RequestState
from studio.models.server_settings import ServerSettings
from studio.server.parts import ServerParts


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("keeps", [True, False])
@on_a_loop
async def test_a_request_that_was_answered(*, stream: bool, keeps: bool) -> None:
    log = RequestLog()
    settings = ServerSettings(keeps_prompts=keeps)
    async with open_client(FakeEngine(), settings=settings, parts=ServerParts(log=log)) as client:
        await client.post(CHAT, json={**HELLO, "stream": stream})
        await client.get("/health")
        await client.get("/nowhere")
    answered, wrong = log.rows
    assert (answered.method, answered.path, answered.status) == ("POST", CHAT, 200)
    assert (answered.state, answered.model) == (RequestState.DONE, "tiny")
    assert len(answered.run_ids) == 1
    assert answered.completion_tokens > 0
    assert answered.is_over
    assert ("Say hello." in answered.prompt) is keeps
    assert (wrong.path, wrong.status, wrong.state) == ("/nowhere", 404, RequestState.REFUSED)


@pytest.mark.parametrize("stream", [True, False])
@on_a_loop
async def test_a_client_that_leaves_and_an_error_in_a_stream(*, stream: bool) -> None:
    engine, log = WatchedEngine(auto=False), RequestLog()
    call = AsgiCall(make_app(engine, parts=ServerParts(log=log)), CHAT, {**HELLO, "stream": stream})
    while not engine.requests:
        await call.pause()
    assert not log.rows[0].is_over
    await call.leave()
    assert (log.rows[0].state, log.rows[0].is_over) == (RequestState.LEFT, True)


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("Zed/0.211.6 (linux; x86_64)", "Zed"),
        ("python-requests/2.31.0", "python-requests"),
        ("OpenAI/Python 1.99.1", "OpenAI"),
        ("AsyncOpenAI/JS", "AsyncOpenAI"),
        ("curl", "curl"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox"),
        (
            "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) My-Notes/2.1 Chrome/138.0 Electron/37.2",
            "My-Notes",
        ),
        ("", ""),
        ("\u202e/1 <b>/2 " + "x" * 5000, ""),
    ],
)
@on_a_loop
async def test_a_program_without_a_key_goes_by_what_it_calls_itself(agent: str, name: str) -> None:
    log = RequestLog()
    async with open_client(FakeEngine(), parts=ServerParts(log=log)) as client:
        await client.post(CHAT, json=HELLO, headers={"user-agent": agent.encode()})
    (row,) = log.rows
    assert row.program == name
    assert row.client == (name or "127.0.0.1")
    assert row.key == ""


def test_only_the_newest_thousand_are_kept() -> None:
    log = RequestLog()
    rows = [
        RequestRow(row_id=log.new_id(), started_s=n, method="GET", path="/", client="")
        for n in range(MOST_ROWS + 5)
    ]
    for row in rows:
        log.put(row)
    assert log.rows == tuple(rows[5:])
    log.put(rows[0])
    assert log.rows == tuple(rows[5:])
