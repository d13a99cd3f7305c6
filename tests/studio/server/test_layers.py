"""Paths by other names, and request lines with a whole address."""

from __future__ import annotations

import pytest
from starlette.types import Message

from fakes.fake_engine import FakeEngine
from fakes.http_driver import CHAT, POSTS, assert_error, make_app, on_a_loop, open_client
from studio.models.server_settings import ServerSettings

KEYED = ServerSettings(api_key="hunter2")


@pytest.mark.parametrize(
    ("alias", "path"),
    [
        ("/chat/completions", CHAT),
        ("/completions", "/completion"),
        ("/models", "/v1/models"),
        ("/v1/health", "/health"),
    ],
)
@on_a_loop
async def test_the_other_names_of_llama_server_find_the_same(alias: str, path: str) -> None:
    method = "POST" if path in POSTS else "GET"
    async with open_client(FakeEngine()) as client:
        answers = [
            await client.request(method, each, json=POSTS.get(path)) for each in (alias, path)
        ]
    assert answers[0].status_code == answers[1].status_code != 404
    assert answers[0].json().keys() == answers[1].json().keys()


@on_a_loop
async def test_other_names_of_paths_need_the_key_as_the_first_ones_do() -> None:
    async with open_client(FakeEngine(), settings=KEYED) as client:
        assert (await client.get("/v1/health")).status_code == 200
        assert_error(await client.get("/models"), 401, "invalid_api_key")
        assert_error(await client.post("/completions", json={}), 401, "invalid_api_key")


@pytest.mark.parametrize(
    ("target", "status"),
    [("http://localhost/health", 200), ("HTTP://localhost:80", 200), ("http://evil/health", 403)],
)
@on_a_loop
async def test_a_whole_address_in_the_request_line_is_read(target: str, status: int) -> None:
    path = target.encode()
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": target,
        "raw_path": path, "query_string": b"", "headers": [(b"host", b"localhost")],
    }  # fmt: skip
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    await make_app(FakeEngine())(scope, receive, send)
    assert sent[0]["status"] == status
