"""Errors in Anthropic's shape, with its types, for the paths whose clients know no other. Pure; knows no route."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import Scope

from engine.errors import ContextLengthExceeded, EngineError, PoolFull, WaitedTooLong
from studio.server.errors import ApiError, kind_of
from studio.server.framing import Json

_OVERLOADED = 529
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    _OVERLOADED: "overloaded_error",
}


def is_from_anthropics_client(scope: Scope) -> bool:
    """All of them send the version of the API that they speak."""
    return "anthropic-version" in Headers(scope=scope)


def error_status(error: ApiError | EngineError) -> int:
    """As everywhere; but 529 where others are in the way, which clients of Anthropic try again by themselves."""
    return _OVERLOADED if isinstance(error, WaitedTooLong) else kind_of(error).status


def error_body(error: ApiError | EngineError, request_id: str) -> Json:
    """The body of an error answer, and an event of a stream that had begun."""
    status = error_status(error)
    kind = _TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {
        "type": "error",
        "error": {"type": kind, "message": _message(error)},
        "request_id": request_id,
    }


def _message(error: ApiError | EngineError) -> str:
    """Clients look for these words to make a conversation shorter."""
    if isinstance(error, ContextLengthExceeded) and not isinstance(error, PoolFull):
        return f"prompt is too long: {error.needed_tokens} tokens > {error.limit_tokens} maximum; {error}"
    return str(error)
