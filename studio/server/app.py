"""The ASGI application: every route, the layers around them, and the answer to every error.

Built and run on the server thread.
"""

from __future__ import annotations

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from engine.errors import EngineError
from studio.models.request_log import RequestLog
from studio.models.server_keys import KeyRing
from studio.models.server_settings import ServerSettings
from studio.server.auth import HostGuard, KeyGuard, RequestCaps
from studio.server.context import ServerContext
from studio.server.cors import PageGuard
from studio.server.error_response import error_response
from studio.server.errors import (
    INVALID_REQUEST,
    SERVER_ERROR,
    ApiError,
    ClientLeft,
    ErrorKind,
)
from studio.server.layers import ForgivingPaths, RequestIds
from studio.server.openapi.methods import methods_of
from studio.server.request_rows import RequestRows
from studio.server.routes.chat import chat_router
from studio.server.routes.completions import completions_router
from studio.server.routes.docs import docs_router
from studio.server.routes.embeddings import embeddings_router
from studio.server.routes.health import health_router
from studio.server.routes.llamacpp import llamacpp_router
from studio.server.routes.lmstudio import lmstudio_router
from studio.server.routes.messages import messages_router
from studio.server.routes.metrics import metrics_router
from studio.server.routes.models import models_router
from studio.server.routes.ollama import ollama_router
from studio.server.routes.responses import responses_router
from studio.server.routes.runs import runs_router
from studio.server.routes.slots import slots_router
from studio.server.routes.texts import texts_router

_ROUTERS = (
    health_router,
    metrics_router,
    slots_router,
    models_router,
    runs_router,
    chat_router,
    completions_router,
    embeddings_router,
    texts_router,
    llamacpp_router,
    ollama_router,
    lmstudio_router,
    messages_router,
    responses_router,
    docs_router,
)


def build_app(
    context: ServerContext, settings: ServerSettings, *, keys: KeyRing, log: RequestLog
) -> FastAPI:
    """The application. The framework's own description is off: it knows no bodies, its page loads foreign scripts."""
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    for router in _ROUTERS:
        app.include_router(router(context))
    _answer_errors(app)
    # The last one added is the outermost.
    app.add_middleware(RequestCaps)
    app.add_middleware(KeyGuard, settings=settings, keys=keys)
    app.add_middleware(HostGuard, settings=settings, keys=keys)
    app.add_middleware(ForgivingPaths)
    app.add_middleware(RequestRows, log=log)
    app.add_middleware(PageGuard, settings=settings)
    app.add_middleware(RequestIds)
    return app


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(ApiError)
    async def on_api_error(http: HttpRequest, error: ApiError) -> Response:
        return error_response(error)

    @app.exception_handler(EngineError)
    async def on_engine_error(http: HttpRequest, error: EngineError) -> Response:
        return error_response(error)

    @app.exception_handler(HTTPException)
    async def on_routing_error(http: HttpRequest, error: HTTPException) -> Response:
        if error.status_code == 405:
            error.headers = {"Allow": ", ".join(methods_of(http.url.path))}
            if http.method == "OPTIONS":
                return Response(status_code=204, headers=error.headers)
        return error_response(_routing_error(http, error))

    @app.exception_handler(ClientLeft)
    @app.exception_handler(ClientDisconnect)
    async def on_client_left(http: HttpRequest, error: Exception) -> Response:
        return Response(status_code=499)  # for the log; nobody reads it

    @app.exception_handler(Exception)
    async def on_bug(http: HttpRequest, error: Exception) -> Response:
        """The error itself goes to the log, from where it is raised again."""
        message = "the server failed to answer; its log says why"
        return error_response(ApiError(message, ErrorKind(500, SERVER_ERROR, "internal_error")))


def _routing_error(http: HttpRequest, error: HTTPException) -> ApiError:
    path = http.url.path[:200]
    if error.status_code == 404:
        kind = ErrorKind(404, INVALID_REQUEST, "unknown_path")
        return ApiError(f"there is no {path!r} here; try /v1/models or /v1/chat/completions", kind)
    headers = dict(error.headers or {})
    allowed = headers.get("Allow", "another method")
    kind = ErrorKind(error.status_code, INVALID_REQUEST, "method_not_allowed")
    return ApiError(f"{path!r} takes {allowed}, not {http.method}", kind, headers=headers)
