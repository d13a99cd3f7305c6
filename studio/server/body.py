"""Reading a request's body: bounded, then parsed and checked against a wire type in one go. Server thread."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request as HttpRequest

from engine.errors import InvalidRequest
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind
from studio.server.wire import WireModel

MAX_BODY_BYTES = 32 << 20

Wire = TypeVar("Wire", bound=WireModel)


async def read_body(http: HttpRequest, wire: type[Wire]) -> Wire:
    """The body as `wire`, whatever its Content-Type says.

    Raises ApiError (413), InvalidRequest naming the parameter or the place in the JSON, and starlette's
    ClientDisconnect when the client leaves before its end.
    """
    body = await _read_bounded(http)
    if not body.strip():
        raise InvalidRequest("the body is empty; send a JSON object")
    try:
        return wire.model_validate_json(body)
    except ValidationError as error:
        raise _as_invalid_request(error) from None


async def _read_bounded(http: HttpRequest) -> bytes:
    declared = http.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > MAX_BODY_BYTES:
        raise _too_large(f"{declared} bytes")
    body = bytearray()
    async for part in http.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise _too_large(f"over {MAX_BODY_BYTES} bytes")
    return bytes(body)


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
