"""Reading a request's body: bounded in size and time, then parsed and checked against a wire type in one go.

Server thread.
"""

from __future__ import annotations

import asyncio
import codecs
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request as HttpRequest

from engine.errors import InvalidRequest
from studio.server.connection import ConnectionLimits
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind
from studio.server.wire import WireModel

MAX_BODY_BYTES = 8 << 20
"""More than a million tokens of text. Reading the nastiest body takes a second or two, beside the streams."""
_SMALL_BYTES = 64 << 10
"""Read on the loop, in a millisecond; larger ones by a worker."""

Wire = TypeVar("Wire", bound=WireModel)


async def read_body(http: HttpRequest, wire: type[Wire], limits: ConnectionLimits) -> Wire:
    """The body as `wire`, whatever its Content-Type says.

    Raises ApiError (408, 413, 415), InvalidRequest naming the parameter or the place in the JSON, and starlette's
    ClientDisconnect when the client leaves before its end.
    """
    encoding = http.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise _unknown_encoding(encoding)
    body = (await _read_bounded(http, limits)).removeprefix(codecs.BOM_UTF8)
    if not body.strip():
        raise InvalidRequest("the body is empty; send a JSON object")
    try:
        if len(body) <= _SMALL_BYTES:
            return wire.model_validate_json(body)
        return await asyncio.to_thread(wire.model_validate_json, body)
    except ValidationError as error:
        raise _as_invalid_request(error) from None


async def _read_bounded(http: HttpRequest, limits: ConnectionLimits) -> bytes:
    declared = http.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > MAX_BODY_BYTES:
        raise _too_large(f"{declared} bytes")
    body = bytearray()
    give_up_s = asyncio.get_running_loop().time() + limits.body_s
    try:
        async with asyncio.timeout_at(give_up_s) as patience:
            async for part in http.stream():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise _too_large(f"over {MAX_BODY_BYTES} bytes")
                patience.reschedule(give_up_s + len(body) / limits.body_bytes_per_s)
    except TimeoutError:
        raise _too_slow(len(body)) from None
    return bytes(body)


def _unknown_encoding(encoding: str) -> ApiError:
    return ApiError(
        f"the body is encoded as {encoding[:40]!r}; send it as it is, without Content-Encoding",
        ErrorKind(415, INVALID_REQUEST, "unsupported_encoding"),
    )


def _too_slow(num_bytes: int) -> ApiError:
    return ApiError(
        f"the body came too slowly: {num_bytes} bytes, then no more in time; send it at once",
        ErrorKind(408, INVALID_REQUEST, "request_timeout"),
    )


def _too_large(size: str) -> ApiError:
    return ApiError(
        f"the body has {size}, the limit is {MAX_BODY_BYTES}; send less at once",
        ErrorKind(413, INVALID_REQUEST, "request_too_large"),
    )


def _as_invalid_request(error: ValidationError) -> InvalidRequest:
    """The first thing that is wrong, in words."""
    first = error.errors(include_url=False, include_context=False)[0]
    param = _path(first["loc"])
    kind, message = first["type"], first["msg"]
    if kind == "json_invalid":
        return InvalidRequest(
            f"the body is not valid JSON: {message.removeprefix('Invalid JSON: ')}"
        )
    if not param:
        return InvalidRequest('the body is no JSON object; send one, as in {"messages": [...]}')
    if kind == "missing":
        return InvalidRequest(f"{param} is missing", param=param)
    if kind.startswith("layby_"):
        return InvalidRequest(f"{param} {message}", param=param)
    return InvalidRequest(
        f"{param}{_preview(first['input'])}: {message[0].lower()}{message[1:]}", param=param
    )


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def _preview(value: object) -> str:
    if value is None:
        return " is null"
    if isinstance(value, str | int | float):
        return f" is {value!r:.60}"
    return ""
