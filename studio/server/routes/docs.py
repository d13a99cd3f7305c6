"""GET /openapi.json and /docs: what this API is, for programs and for people. Neither needs a key. Server thread."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter
from starlette.responses import HTMLResponse

from studio.server.context import ServerContext
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.openapi.document import build_document
from studio.server.openapi.entries import OPERATIONS
from studio.server.openapi.page import POLICY, build_page

API_DESCRIPTION = "1.0.0"
"""The version of the description, which changes with what it describes."""


def docs_router(context: ServerContext) -> APIRouter:
    router = APIRouter()

    @cache
    def document() -> Json:
        return build_document(OPERATIONS, API_DESCRIPTION)

    @cache
    def page() -> str:
        return build_page(document())

    @router.get("/openapi.json")
    async def openapi() -> JsonAnswer:
        return JsonAnswer(document())

    @router.get("/docs")
    async def docs() -> HTMLResponse:
        return HTMLResponse(page(), headers={"content-security-policy": POLICY})

    return router
