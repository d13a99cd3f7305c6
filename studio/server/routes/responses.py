"""/v1/responses: responses streamed and whole, their tokens counted, and those that are kept. Server thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from engine.errors import InvalidRequest
from studio.server.auth import caller_of
from studio.server.context import Delivery, ServerContext
from studio.server.framing import Json
from studio.server.json_text import JsonAnswer
from studio.server.replies import new_reply_head
from studio.server.responses.context import ResponseContext, fitting, response_not_found
from studio.server.responses.fields import ResponsesRequest
from studio.server.responses.items import Item
from studio.server.responses.reply import ResponsesReply
from studio.server.responses.store import KeptResponse, ResponseStore
from studio.server.responses.translate import blank_response, chat_of, responses_request

_MOST_ITEMS = 100


def responses_router(context: ServerContext) -> APIRouter:
    router = APIRouter()
    store = ResponseStore()

    async def items_of(
        http: HttpRequest, wire: ResponsesRequest, before: ResponseContext
    ) -> Sequence[Item]:
        if wire.truncation != "auto":
            return before.items
        work = fitting(context.client, wire, before.items)
        return await context.live.run(work, receive=http.receive)

    @router.post("/v1/responses")
    async def create(http: HttpRequest) -> Response:
        wire = await context.read(http, ResponsesRequest)
        model = await context.model_for(http, wire.model)
        before = ResponseContext(store, caller_of(http.scope).key_id, wire)
        items = await items_of(http, wire, before)
        head = new_reply_head("resp", model.name, joint="_")
        request = responses_request(wire, items, head.reply_id)
        shape = ResponsesReply(
            blank_response(wire, request, head),
            has_logprobs=wire.logprobs is not None,
            seals_thoughts=wire.seals_thoughts,
            keep=before.keep if wire.is_kept else None,
        )
        delivery = Delivery(
            streams=bool(wire.stream),
            ping_interval_s=wire.sse_ping_interval,
            priority=wire.priority,
        )
        return await context.answer(http, (request,), shape, delivery)

    @router.post("/v1/responses/input_tokens")
    async def input_tokens(http: HttpRequest) -> JsonAnswer:
        wire = await context.read(http, ResponsesRequest)
        await context.model_for(http, wire.model)
        before = ResponseContext(store, caller_of(http.scope).key_id, wire)
        chat = chat_of(wire, await items_of(http, wire, before))
        count = await context.count_tokens(http, chat)
        return JsonAnswer({"object": "response.input_tokens", "input_tokens": count})

    _add_kept(router, store)
    return router


def _add_kept(router: APIRouter, store: ResponseStore) -> None:
    """The routes of responses that are kept; each key sees its own."""

    def kept(http: HttpRequest, response_id: str) -> KeptResponse:
        found = store.get(caller_of(http.scope).key_id, response_id)
        if found is None:
            raise response_not_found(response_id)
        return found

    @router.get("/v1/responses/{response_id}")
    async def show(http: HttpRequest, response_id: str) -> JsonAnswer:
        if http.query_params.get("stream", "false") != "false":
            raise InvalidRequest(
                "stream: a response that is kept has ended; ask for it without", param="stream"
            )
        return JsonAnswer(kept(http, response_id).response)

    @router.delete("/v1/responses/{response_id}")
    async def delete(http: HttpRequest, response_id: str) -> JsonAnswer:
        if not store.drop(caller_of(http.scope).key_id, response_id):
            raise response_not_found(response_id)
        return JsonAnswer({"id": response_id, "object": "response", "deleted": True})

    @router.get("/v1/responses/{response_id}/input_items")
    async def input_items(http: HttpRequest, response_id: str) -> JsonAnswer:
        return JsonAnswer(_page(kept(http, response_id).inputs, http.query_params))


def _page(items: Sequence[Item], query: Mapping[str, str]) -> Json:
    """Some of the items, the last one first unless asked otherwise."""
    limit, order = query.get("limit", "20"), query.get("order", "desc")
    is_number = limit.isascii() and limit.isdecimal() and len(limit) <= len(str(_MOST_ITEMS))
    if not (is_number and 1 <= int(limit) <= _MOST_ITEMS):
        raise InvalidRequest(
            f"limit is {limit[:40]!r}, allowed is 1 to {_MOST_ITEMS}", param="limit"
        )
    if order not in ("asc", "desc"):
        raise InvalidRequest(f"order is {order[:40]!r}, allowed are asc and desc", param="order")
    found = [item.wire for item in (items if order == "asc" else reversed(items))]
    if (after := query.get("after")) is not None:
        ids = [item["id"] for item in found]
        if after not in ids:
            raise InvalidRequest(
                f"after names the item {after[:100]!r}, which is not there", param="after"
            )
        found = found[ids.index(after) + 1 :]
    data = found[: int(limit)]
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": len(data) < len(found),
    }
