"""Every error the server answers with, in OpenAI's shape, and the one table from engine errors to HTTP.

Pure; knows no route. How other families of routes word them is told in `error_response`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from engine.errors import (
    ContextLengthExceeded,
    EngineError,
    InvalidRequest,
    ModelUnavailable,
    WaitedTooLong,
)

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"
CONTEXT_SIZE = "exceed_context_size_error"
"""The type by which clients of llama.cpp know it; clients of OpenAI read the code."""

LOADING_RETRY_S = 2.0
"""When to ask again while a model is being loaded."""


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """How one kind of error looks on the wire."""

    status: int
    type: str
    code: str


ENGINE_ERRORS: dict[str, ErrorKind] = {
    "engine_error": ErrorKind(500, SERVER_ERROR, "engine_error"),
    "invalid_request": ErrorKind(400, INVALID_REQUEST, "invalid_request"),
    "invalid_value": ErrorKind(400, INVALID_REQUEST, "invalid_value"),
    "context_length_exceeded": ErrorKind(400, CONTEXT_SIZE, "context_length_exceeded"),
    "pool_full": ErrorKind(500, SERVER_ERROR, "pool_full"),
    "model_error": ErrorKind(503, SERVER_ERROR, "model_error"),
    "model_not_found": ErrorKind(404, INVALID_REQUEST, "model_not_found"),
    "model_corrupt": ErrorKind(503, SERVER_ERROR, "model_corrupt"),
    "model_unsupported": ErrorKind(503, SERVER_ERROR, "model_unsupported"),
    "not_enough_memory": ErrorKind(503, SERVER_ERROR, "not_enough_memory"),
    "waited_too_long": ErrorKind(503, SERVER_ERROR, "waited_too_long"),
    "restore_failed": ErrorKind(500, SERVER_ERROR, "restore_failed"),
    "suspended": ErrorKind(503, SERVER_ERROR, "suspended"),
    "resume_refused": ErrorKind(409, INVALID_REQUEST, "resume_refused"),
    "park_disk_failed": ErrorKind(500, SERVER_ERROR, "park_disk_failed"),
    "model_unavailable": ErrorKind(503, SERVER_ERROR, "model_unavailable"),
    "device_failure": ErrorKind(500, SERVER_ERROR, "device_failure"),
    "engine_stopped": ErrorKind(503, SERVER_ERROR, "engine_stopped"),
}
"""EngineError.code -> the answer. A test fails when a class of engine.errors has no row."""


class ApiError(Exception):
    """An error that the server itself finds, before or beside the engine."""

    def __init__(
        self,
        message: str,
        kind: ErrorKind,
        *,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.param = param
        self.headers = headers


class ClientLeft(Exception):
    """The client closed the connection; nobody reads the answer any more."""


def server_stopping() -> ApiError:
    return ApiError(
        "the server is stopping; ask again when it is back",
        ErrorKind(503, SERVER_ERROR, "server_stopping"),
    )


def reader_too_slow(num_unread: int) -> ApiError:
    """For a stream whose client takes text so slowly that too much of it would have to be kept."""
    return ApiError(
        f"{num_unread} tokens of this stream wait to be read; read faster, or set max_tokens",
        ErrorKind(503, SERVER_ERROR, "reader_too_slow"),
    )


def request_cancelled() -> ApiError:
    """For a request that something other than its own client ended."""
    return ApiError(
        "the request was stopped from Layby before it ended",
        ErrorKind(503, SERVER_ERROR, "request_cancelled"),
    )


def kind_of(error: ApiError | EngineError) -> ErrorKind:
    return error.kind if isinstance(error, ApiError) else ENGINE_ERRORS[error.code]


def error_body(error: ApiError | EngineError) -> dict[str, Any]:
    """`{"error": {...}}`, the body of an error answer and the data of an error event.

    An error about the context has both figures, under the names that clients of llama.cpp read.
    """
    kind = kind_of(error)
    param = error.param if isinstance(error, ApiError | InvalidRequest) else None
    body: dict[str, Any] = {
        "message": str(error),
        "type": kind.type,
        "param": param,
        "code": kind.code,
    }
    if isinstance(error, ContextLengthExceeded):
        body |= {"n_prompt_tokens": error.prompt_tokens, "n_ctx": error.limit_tokens}
    return {"error": body}


def error_headers(error: ApiError | EngineError) -> dict[str, str] | None:
    if isinstance(error, ApiError):
        return error.headers
    if isinstance(error, WaitedTooLong | ModelUnavailable) and error.retry_after_s is not None:
        return retry_after(error.retry_after_s)
    return None


def retry_after(seconds: float) -> dict[str, str]:
    """The header that tells a client when to ask again: in whole seconds, at least one."""
    return {"retry-after": str(max(math.ceil(seconds), 1))}
