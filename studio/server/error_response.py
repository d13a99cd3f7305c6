"""The answer that an error is, worded as the clients of the path that was asked expect it. Server thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.errors import EngineError
from studio.server.errors import ApiError, error_body, error_headers, kind_of
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.layers import clean_path, id_headers, request_id_of
from studio.server.messages import errors as messages_errors
from studio.server.ollama import errors as ollama_errors
from studio.server.request_rows import note_of

Error = ApiError | EngineError


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How a family of routes words errors."""

    status: Callable[[Error], int]
    body: Callable[[Error, str], Json]
    """From the error and the id of the request."""


def _openai_status(error: Error) -> int:
    return kind_of(error).status


def _openai_body(error: Error, request_id: str) -> Json:
    return error_body(error)


def _ollama_body(error: Error, request_id: str) -> Json:
    return ollama_errors.error_body(error)


_OPENAI = Wording(status=_openai_status, body=_openai_body)
_ANTHROPIC = Wording(status=messages_errors.error_status, body=messages_errors.error_body)
_OTHERS = (
    ("/api", Wording(status=_openai_status, body=_ollama_body)),
    ("/v1/messages", _ANTHROPIC),
)
"""Paths that begin like this, and their wording."""


class ErrorResponse(Response):
    """Finds out only when it is sent which path was asked: most errors are found where nobody knows."""

    def __init__(self, error: Error) -> None:
        super().__init__()
        self._error = error

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        note_of(scope).fail(str(self._error))
        wording, request_id = _wording_of(scope), request_id_of(scope)
        # What answers a bug of ours lies outside the layer that tells the id.
        headers = {**id_headers(request_id), **(error_headers(self._error) or {})}
        body, status = wording.body(self._error, request_id), wording.status(self._error)
        await JsonAnswer(body, status, headers)(scope, receive, send)


def error_response(error: Error) -> ErrorResponse:
    return ErrorResponse(error)


def _wording_of(scope: Scope) -> Wording:
    path = clean_path(scope["path"])
    for prefix, wording in _OTHERS:
        if path == prefix or path.startswith(prefix + "/"):
            return wording
    return _ANTHROPIC if messages_errors.is_from_anthropics_client(scope) else _OPENAI
