"""Drives the HTTP server in a test: an engine to wait on, the application called in-process, raw sockets."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from engine.api import EngineEvent, EnginePort, Request
from engine.client import EngineClient
from fakes.fake_engine import FakeEngine
from fakes.on_a_loop import on_a_loop as on_a_loop  # for those that drive the server, too
from fakes.patience import wait_for
from studio.models.server_settings import ServerSettings
from studio.server.app import build_app
from studio.server.context import ServerContext
from studio.server.live_requests import LiveRequests
from studio.server.parts import ServerParts
from studio.server.share_gate import ShareGate
from studio.server.sse import StreamTimings

TIMEOUT_S = 60.0
CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
HELLO = {"messages": [{"role": "user", "content": "Say hello."}]}
MESSAGES = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
RESPONSES = "/v1/responses"
BODIES: dict[str, dict[str, Any]] = {CHAT: HELLO, TEXT: {"prompt": "Once upon"}}
OLLAMA_CHAT = "/api/chat"
OLLAMA_GENERATE = "/api/generate"
REPLIES: dict[str, dict[str, Any]] = {
    **BODIES,
    MESSAGES: {**HELLO, "max_tokens": 64},
    "/completion": {"prompt": "Once upon"},
    "/infill": {"input_prefix": "Once", "input_suffix": "a time"},
    OLLAMA_CHAT: {**HELLO, "stream": False},
    OLLAMA_GENERATE: {"prompt": "Once upon", "stream": False},
    RESPONSES: {"input": "Say hello."},
}
"""Every route that generates, with a body that it takes."""
EMBED = "/v1/embeddings"
LLAMA_EMBED = "/embedding"
POSTS = {
    **REPLIES,
    COUNT: HELLO,
    f"{RESPONSES}/input_tokens": {"input": "Say hello."},
    EMBED: {"input": "Once upon"},
    LLAMA_EMBED: {"content": "Once upon"},
    "/tokenize": {"content": "Once upon"},
    "/detokenize": {"tokens": [1, 2]},
    "/apply-template": HELLO,
    "/api/embed": {"input": "Once upon"},
    "/api/embeddings": {"prompt": "Once upon"},
    "/api/show": {},
}
"""Every route that reads a body and needs a model."""


class WatchedEngine(FakeEngine):
    """A fake engine whose requests and aborts can be waited for, from any thread."""

    def __init__(self, *, auto: bool = True, ready: bool = True) -> None:
        super().__init__(auto=auto, ready=ready)
        self._news = threading.Condition()

    def submit(self, request: Request) -> None:
        super().submit(request)
        with self._news:
            self._news.notify_all()

    def abort(self, request_id: str) -> None:
        super().abort(request_id)
        with self._news:
            self._news.notify_all()

    def wait_for_requests(self, count: int = 1) -> list[str]:
        """Ids in order of arrival."""
        with self._news:
            wait_for(self._news, lambda: len(self.requests) >= count, f"{count} requests")
        return list(self.requests)

    def wait_for_aborts(self, count: int = 1) -> list[str]:
        with self._news:
            wait_for(self._news, lambda: len(self.aborted) >= count, f"{count} aborts")
        return self.aborted


def make_app(
    engine: EnginePort,
    *,
    settings: ServerSettings | None = None,
    timings: StreamTimings | None = None,
    parts: ServerParts | None = None,
    live: LiveRequests | None = None,
) -> FastAPI:
    """The application on the running loop."""
    client, settings, parts = (
        EngineClient(engine, asyncio.get_running_loop()),
        settings or ServerSettings(),
        parts or ServerParts(),
    )
    context = ServerContext(
        client=client,
        gate=ShareGate(client),
        timings=timings or StreamTimings(),
        demand=parts.make_demand() if parts.make_demand is not None else None,
        keeps_prompts=settings.keeps_prompts,
        live=live or LiveRequests(),
    )
    return build_app(context, settings, keys=parts.keys, log=parts.log)


@asynccontextmanager
async def open_client(
    engine: EnginePort, *, settings: ServerSettings | None = None, parts: ServerParts | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application, with no socket between; it gets answers whole."""
    app = make_app(engine, settings=settings, parts=parts)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


def assert_error(answer: httpx.Response, status: int, code: str, param: str | None = None) -> str:
    """The answer is an error in the shape of its path: OpenAI's, Anthropic's or Ollama's; returns its message."""
    if answer.request.url.path.startswith(MESSAGES):
        return _assert_anthropics_error(answer, status, code)
    if answer.request.url.path.startswith("/api/"):
        assert answer.status_code == status, answer.text
        assert set(answer.json()) == {"error"}
        return str(answer.json()["error"])
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    assert (error["code"], error["param"]) == (code, param)
    kind = "server_error" if status >= 500 else "invalid_request_error"
    assert error["type"] == {"context_length_exceeded": "exceed_context_size_error"}.get(code, kind)
    return str(error["message"])


_ANTHROPICS_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _assert_anthropics_error(answer: httpx.Response, status: int, code: str) -> str:
    """It has no codes, but a status of its own for a server that has too much to do."""
    status = 529 if code == "waited_too_long" else status
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert set(body) == {"type", "error", "request_id"}
    assert body["type"] == "error"
    assert body["request_id"] == answer.headers["request-id"]
    assert set(body["error"]) == {"type", "message"}
    kind = "api_error" if status >= 500 else "invalid_request_error"
    assert body["error"]["type"] == _ANTHROPICS_TYPES.get(status, kind)
    return str(body["error"]["message"])


class AsgiCall:
    """One POST to the application, step by step: what was sent so far, and the client's departure."""

    def __init__(
        self, app: FastAPI, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        self.on_complete: Callable[[], object] = int
        """Called with the last piece of the body."""
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.writes: list[str] = []
        self.is_complete = False
        self._news = asyncio.Condition()
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._inbox.put_nowait({"type": "http.request", "body": json.dumps(body).encode()})
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [
                (name.encode(), value.encode())
                for name, value in {"host": "localhost", **(headers or {})}.items()
            ],
        }
        self._task = asyncio.create_task(app(scope, self._inbox.get, self._send))

    @property
    def text(self) -> str:
        return "".join(self.writes)

    @property
    def chunks(self) -> list[dict[str, Any]]:
        """The data events so far, without [DONE]."""
        lines = [line for line in self.text.split("\n") if line.startswith("data: {")]
        return [json.loads(line.removeprefix("data: ")) for line in lines]

    async def until(self, is_so: Callable[[AsgiCall], object]) -> None:
        async with self._news:
            await self._news.wait_for(lambda: is_so(self))

    async def pause(self) -> None:
        """Let the application take a step; fails when it has ended."""
        assert not self._task.done(), (self.status, self.text)
        await asyncio.sleep(0)

    async def finished(self) -> None:
        await self._task

    async def tell(self, engine: FakeEngine, *events: EngineEvent) -> None:
        """Emit events one by one, each once the application has written what the one before it asks for."""
        for event in events:
            count = len(self.writes)
            engine.emit(event)
            await self.until(lambda call, count=count: len(call.writes) > count)

    async def leave(self) -> None:
        """The client hangs up; returns when the application has noticed and ended."""
        self._inbox.put_nowait({"type": "http.disconnect"})
        await self._task

    async def _send(self, message: dict[str, Any]) -> None:
        async with self._news:
            assert not self.is_complete, f"after the end: {message}"
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                self.writes.append(message.get("body", b"").decode())
                self.is_complete = not message.get("more_body", False)
                if self.is_complete:
                    self.on_complete()
            self._news.notify_all()


def post_and_stay(address: tuple[str, int], path: str, body: dict[str, Any]) -> socket.socket:
    """Send a request over a real socket and keep the connection; the caller closes it."""
    connection = socket.create_connection(address, timeout=TIMEOUT_S)
    payload = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(payload)}\r\n\r\n"
    connection.sendall(head.encode() + payload)
    return connection


def read_until(connection: socket.socket, marker: bytes) -> bytes:
    """What arrives up to and including `marker`."""
    data = b""
    while marker not in data:
        part = connection.recv(65536)
        assert part, f"the connection ended before {marker!r}: {data!r}"
        data += part
    return data


def read_to_end(connection: socket.socket) -> bytes:
    data = b""
    while part := connection.recv(65536):
        data += part
    return data
