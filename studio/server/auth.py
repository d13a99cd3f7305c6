"""Who may ask: the Host check against DNS rebinding, the Origin check, the API key.

ASGI layers around the routes, on the server thread; each answers with an error or passes the request on unchanged.
"""

from __future__ import annotations

import hmac
import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.models.server_settings import ServerSettings, is_loopback_host
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind, error_response

LOCAL_ORIGIN = r"https?://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?"
"""Pages served from this machine: the only ones that get CORS headers."""
_WEB_ORIGIN = re.compile(r"https?://.*|null")
"""Origins that any website can send; "null" is what a sandboxed frame of one sends."""
_OPEN_PATHS = frozenset({"/health"})


class HostGuard:
    """Refuses requests that a foreign web page could have made the user's browser send.

    A page whose name was rebound to 127.0.0.1 gives itself away by its Host, any other by its Origin. With an API key
    the Origin need not be checked (such a page has no key); with a key and a public address, neither need the Host.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._bound_host = settings.host.lower()
        self._checks_host = settings.is_loopback or not settings.api_key
        self._checks_origin = not settings.api_key
        self._local_origin = re.compile(LOCAL_ORIGIN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if (error := self._objection(headers.get("host"), headers.get("origin"))) is not None:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _objection(self, host: str | None, origin: str | None) -> ApiError | None:
        if self._checks_host and host is not None and not self._is_known(host):
            return ApiError(
                f"the Host header names {host!r}, not this machine; use http://localhost or http://127.0.0.1",
                ErrorKind(403, INVALID_REQUEST, "host_not_allowed"),
            )
        if self._checks_origin and origin is not None and self._is_foreign(origin):
            return ApiError(
                f"pages of {origin!r} may not use this server; set an API key to let programs elsewhere use it",
                ErrorKind(403, INVALID_REQUEST, "origin_not_allowed"),
            )
        return None

    def _is_known(self, host: str) -> bool:
        name = _without_port(host).lower()
        return name == self._bound_host or is_loopback_host(name)

    def _is_foreign(self, origin: str) -> bool:
        return bool(_WEB_ORIGIN.fullmatch(origin)) and not self._local_origin.fullmatch(origin)


class KeyGuard:
    """Asks for the API key, as `Authorization: Bearer KEY` or `x-api-key: KEY`, on every path but /health."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._key = (settings.api_key or "").encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._key and scope["path"] not in _OPEN_PATHS:
            given = _given_key(Headers(scope=scope))
            if given is None or not hmac.compare_digest(given, self._key):
                await error_response(_key_error(is_missing=given is None))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _key_error(*, is_missing: bool) -> ApiError:
    what = "an API key is needed" if is_missing else "the API key is wrong"
    return ApiError(
        f"{what}; send the key set for this server as `Authorization: Bearer KEY`",
        ErrorKind(401, INVALID_REQUEST, "invalid_api_key"),
        headers={"www-authenticate": "Bearer"},
    )


def _given_key(headers: Headers) -> bytes | None:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip().encode("latin-1")
    key = headers.get("x-api-key")
    return None if key is None else key.encode("latin-1")


def _without_port(host: str) -> str:
    """`name:80` -> `name`, `[::1]:80` -> `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
