"""Which web pages may read answers: an ASGI layer that also answers a browser's question beforehand. Server thread."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from studio.models.server_settings import ServerSettings
from studio.server.auth import LOCAL_ORIGIN
from studio.server.error_response import error_response
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind
from studio.server.layers import REQUEST_ID_HEADER

_ASKS_FOR_NETWORK = "access-control-request-private-network"


class PageGuard(CORSMiddleware):
    """Pages of this machine and those that the user has listed; others get an error as of every other kind."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        super().__init__(
            app,
            allow_origins=list(settings.cors_origins),
            allow_origin_regex=LOCAL_ORIGIN,
            allow_methods=["GET", "HEAD", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=[REQUEST_ID_HEADER],
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Browsers also ask whether a page may reach into a private network: one that is let in may."""
        asks_for_network = request_headers.get(_ASKS_FOR_NETWORK) == "true"
        others = [pair for pair in request_headers.raw if pair[0] != _ASKS_FOR_NETWORK.encode()]
        answer = super().preflight_response(Headers(raw=others))
        if answer.status_code == 200:
            if asks_for_network:
                answer.headers["access-control-allow-private-network"] = "true"
            return answer
        origin, method = (
            request_headers[name][:200] for name in ("origin", "access-control-request-method")
        )
        message = f"pages of {origin!r} may not send {method} here; list them under Origins"
        return error_response(
            ApiError(
                message,
                ErrorKind(400, INVALID_REQUEST, "origin_not_allowed"),
                headers={"vary": "Origin"},
            )
        )
