"""ASGI layers for every request, whoever asks: request ids with a log line each, and forgiving paths.

Server thread.
"""

from __future__ import annotations

import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

REQUEST_ID_HEADER = "x-request-id"
_SHORT_ID_HEADER = "request-id"
"""Under which clients of Anthropic look for it."""
_REQUEST_ID = "layby.request_id"
_SAFE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_MOST_PATH_CHARS = 200
_SLASHES = re.compile(r"/{2,}")
_ABSOLUTE = re.compile(r"(?i:https?)://(?P<host>[^/]*)(?P<path>.*)", re.DOTALL)
_ALIASES = {
    "/v1/health": "/health",
    "/models": "/v1/models",
    "/chat/completions": "/v1/chat/completions",
    "/completions": "/completion",
    "/embeddings": "/embedding",
}
"""Other names that llama-server has for paths; its /completions and /embeddings are its own, not OpenAI's."""

logger = logging.getLogger(__name__)


class RequestIds:
    """Answers carry the client's x-request-id, or a fresh one, and so does the log line of the request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
        request_id = given if _SAFE_ID.fullmatch(given) else f"req_{uuid.uuid4().hex}"
        scope.setdefault("state", {})[_REQUEST_ID] = request_id
        started = time.monotonic()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update(id_headers(request_id))
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            logger.info(
                "%s %s -> %d in %.3f s (%s)",
                scope["method"],
                _path_as_sent(scope),
                status,
                time.monotonic() - started,
                request_id,
            )


def _path_as_sent(scope: Scope) -> str:
    """The path with its percent signs: decoded it may hold line breaks, with which it could forge a line of the log."""
    return bytes(scope.get("raw_path", b"")).decode("ascii")[:_MOST_PATH_CHARS]


def id_headers(request_id: str) -> dict[str, str]:
    """The headers that tell it."""
    return {REQUEST_ID_HEADER: request_id, _SHORT_ID_HEADER: request_id}


def request_id_of(scope: Scope) -> str:
    """The id that the answer carries."""
    return str(scope.get("state", {}).get(_REQUEST_ID, ""))


def clean_path(path: str) -> str:
    """Without doubled slashes and one at the end."""
    return _SLASHES.sub("/", path).rstrip("/") or "/"


def _origin_form(scope: Scope) -> Scope:
    """`GET http://host/path` as `GET /path` whose Host is that host, whatever its header says (RFC 9112, 3.2.2)."""
    whole = _ABSOLUTE.fullmatch(scope["path"])
    if whole is None:
        return scope
    others = [(name, value) for name, value in scope["headers"] if name != b"host"]
    host = (b"host", whole["host"].encode())
    return {**scope, "path": whole["path"], "headers": [host, *others]}


class ForgivingPaths:
    """`//v1//models/` and `/models` mean `/v1/models`, and HEAD finds what GET finds (the HTTP layer drops the body).

    The layers inside, the guard of keys too, know a path by one name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        scope = _origin_form(scope)
        path = clean_path(scope["path"])
        clean = {**scope, "path": _ALIASES.get(path, path), "method": method}
        clean.pop("raw_path", None)
        await self._app(clean, receive, send)
