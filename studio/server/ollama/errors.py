"""Errors in Ollama's shape, and what its clients ask for that Layby does otherwise. Pure; knows no route."""

from __future__ import annotations

from engine.errors import EngineError
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind
from studio.server.framing import Json

_INSTEAD = {
    "/api/pull": "download models in Layby's window, or with `layby models get`",
    "/api/push": "Layby sends nothing anywhere",
    "/api/create": "put a GGUF file or a folder into Layby's library with `layby models add`",
    "/api/copy": "models in Layby's library are files; copy the file, and add it with `layby models add`",
    "/api/delete": "remove models in Layby's window, or with `layby models remove`",
}
"""What to do instead."""

REFUSED = tuple(_INSTEAD)


def error_body(error: ApiError | EngineError) -> Json:
    """The body of an error answer, and the last line of a stream that had begun."""
    return {"error": str(error)}


def refusal(path: str) -> ApiError:
    """For a path that changes the library: programs may not."""
    return ApiError(
        f"{path} is not served: programs cannot change Layby's models; {_INSTEAD[path]}",
        ErrorKind(403, INVALID_REQUEST, "not_supported"),
    )
