"""Who may ask: the Host check against DNS rebinding, the Origin check, the keys and how many requests each may have.

ASGI layers around the routes, on the server thread; each answers with an error or passes the request on unchanged.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.models.server_keys import ANONYMOUS, Caller, KeyRing
from studio.models.server_settings import ServerSettings, is_loopback_host
from studio.server.error_response import error_response
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind, retry_after
from studio.server.request_rows import note_of

LOCAL_ORIGIN = r"https?://(([a-z0-9-]+\.)*localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?"
"""Pages served from this machine: beside those that the user has listed, the only ones that get CORS headers."""
_WEB_ORIGIN = re.compile(r"https?://.*|null")
"""Origins that any website can send; "null" is what a sandboxed frame of one sends."""
_CONTAINERS_NAMES = frozenset(
    {"host.docker.internal", "gateway.docker.internal", "host.containers.internal"}
)
"""What containers call the machine they run on. Nobody can rebind these: .internal is delegated to nobody. Nor names
below .localhost, which browsers resolve themselves."""
_OPEN_PATHS = frozenset({"/health", "/docs", "/openapi.json"})
_STEERING = "/v1/runs/"
_CALLER = "layby.caller"
_CAP_RETRY_S = 2.0


class HostGuard:
    """Refuses requests that a foreign web page could have made the user's browser send.

    A page whose name was rebound to 127.0.0.1 gives itself away by its Host, any other by its Origin. Where a key is
    asked for the Origin need not be checked (such a page has no key); with a public address too, neither need the Host.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, keys: KeyRing) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._bound_host = settings.host.lower().removesuffix(".")
        self._local_origin = re.compile(LOCAL_ORIGIN)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        if (error := self._objection(headers.get("host"), headers.get("origin"))) is not None:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _objection(self, host: str | None, origin: str | None) -> ApiError | None:
        asks = asks_for_key(self._settings, self._keys)
        checks_host = self._settings.is_loopback or not asks
        if checks_host and host is not None and not self._is_known(host):
            return ApiError(
                f"the Host header names {host!r}, not this machine; use http://localhost or http://127.0.0.1",
                ErrorKind(403, INVALID_REQUEST, "host_not_allowed"),
            )
        if not asks and origin is not None and self._is_foreign(origin):
            return ApiError(
                f"pages of {origin!r} may not use this server; list them under Origins, or make a key, to let them",
                ErrorKind(403, INVALID_REQUEST, "origin_not_allowed"),
            )
        return None

    def _is_known(self, host: str) -> bool:
        name = _without_port(host).lower().removesuffix(".")
        is_local = is_loopback_host(name) or name.endswith(".localhost")
        return is_local or name == self._bound_host or name in _CONTAINERS_NAMES

    def _is_foreign(self, origin: str) -> bool:
        listed = self._settings.cors_origins
        if "*" in listed or origin.lower() in listed:
            return False
        return bool(_WEB_ORIGIN.fullmatch(origin)) and not self._local_origin.fullmatch(origin)


class KeyGuard:
    """Finds out who asks, by `Authorization: Bearer KEY` or `x-api-key: KEY`, on every path but /health.

    One that is right is enough: OpenAI goes by the first header and Anthropic by the second, and does not mind what a
    program sends in the other one, such as a key left over from another provider. We are both.
    Whoever has no right key is refused where keys are asked for. Routes find the caller with `caller_of`.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings, keys: KeyRing) -> None:
        self._app = app
        self._settings = settings
        self._keys = keys
        self._key = (settings.api_key or "").encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = ANONYMOUS
        if scope["path"] not in _OPEN_PATHS:
            given = _given_keys(Headers(scope=scope))
            known = next(filter(None, map(self._identify, given)), None)
            if known is None and asks_for_key(self._settings, self._keys):
                await error_response(_key_error(is_missing=not given))(scope, receive, send)
                return
            caller = known or ANONYMOUS
        state = scope.setdefault("state", {})
        state[_CALLER] = caller
        note_of(scope).name(caller)
        await self._app(scope, receive, send)

    def _identify(self, given: bytes) -> Caller | None:
        if self._key and hmac.compare_digest(given, self._key):
            return ANONYMOUS
        return self._keys.caller(given.decode("latin-1"))


class RequestCaps:
    """Refuses a POST of a key that has as many under way as it may; steering costs nothing and is not counted."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._num_under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = caller_of(scope)
        if scope["method"] != "POST" or scope["path"].startswith(_STEERING) or not caller.key_id:
            await self._app(scope, receive, send)
            return
        if caller.max_requests and self._num_under_way[caller.key_id] >= caller.max_requests:
            await error_response(_too_many(caller))(scope, receive, send)
            return
        self._num_under_way[caller.key_id] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._num_under_way[caller.key_id] -= 1


def asks_for_key(settings: ServerSettings, keys: KeyRing) -> bool:
    """Whether a request needs a key now. Where other machines can reach the server always, even with no key left."""
    if not settings.is_loopback:
        return True
    return bool(settings.api_key) or (bool(keys.keys) and not settings.lets_local_in)


def caller_of(scope: Scope) -> Caller:
    """Who the key guard found to be asking."""
    caller = scope.get("state", {}).get(_CALLER, ANONYMOUS)
    assert isinstance(caller, Caller)
    return caller


def _too_many(caller: Caller) -> ApiError:
    return ApiError(
        f"the key {caller.name!r} may have {caller.max_requests} requests at once and has; wait for one to end, "
        "or allow more on Layby's page of keys",
        ErrorKind(429, "rate_limit_error", "too_many_requests"),
        headers=retry_after(_CAP_RETRY_S),
    )


def _key_error(*, is_missing: bool) -> ApiError:
    what = "an API key is needed" if is_missing else "the API key is wrong"
    return ApiError(
        f"{what}; send the key set for this server as `Authorization: Bearer KEY`",
        ErrorKind(401, INVALID_REQUEST, "invalid_api_key"),
        headers={"www-authenticate": "Bearer"},
    )


def _given_keys(headers: Headers) -> list[bytes]:
    """Of `Authorization` first."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    given = (bearer or None, headers.get("x-api-key"))
    return [key.encode("latin-1") for key in given if key is not None]


def _without_port(host: str) -> str:
    """`name:80` -> `name`, `[::1]:80` -> `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
