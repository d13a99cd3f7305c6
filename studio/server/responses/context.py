"""What a response goes on from: items of responses that are kept, and what fits of a long conversation.

Server thread.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from engine.client import EngineClient
from engine.errors import InvalidRequest
from studio.server.errors import INVALID_REQUEST, ApiError, ErrorKind
from studio.server.framing import Json
from studio.server.responses.fields import ResponsesRequest
from studio.server.responses.items import Item, Reference, Said, read_item
from studio.server.responses.store import KeptResponse, ResponseStore
from studio.server.responses.translate import chat_of

_REPLY_SHARE = 4
"""A conversation that is cut leaves one token in so many to the reply, where the request says no less."""


class ResponseContext:
    """Of one request: the items before it and its own, references followed."""

    def __init__(self, store: ResponseStore, key_id: str, wire: ResponsesRequest) -> None:
        """Raises ApiError for a response that is not kept, InvalidRequest for such an item."""
        self._store = store
        self._key_id = key_id
        previous = self._previous(wire.previous_response_id)
        if wire.input is None and previous is None:
            raise InvalidRequest("input is missing", param="input")
        self._before = previous.context if previous is not None else ()
        self._before_bytes = previous.size_bytes if previous is not None else 0
        self._inputs = tuple(self._followed(item) for item in wire.input or ())

    @property
    def items(self) -> tuple[Item, ...]:
        return self._before + self._inputs

    def keep(self, response: Json) -> None:
        """The response has ended: later ones may go on from here."""
        outputs: list[Item] = []
        for item in response["output"]:
            with suppress(ValueError):  # a call that was cut off is none that has a result
                outputs.append(read_item("", item))
        own = (response, *(item.wire for item in (*self._inputs, *outputs)))
        kept = KeptResponse(
            response=response,
            before=self._before,
            inputs=self._inputs,
            outputs=tuple(outputs),
            size_bytes=self._before_bytes + sum(len(json.dumps(each)) for each in own),
        )
        self._store.put(self._key_id, kept)

    def _previous(self, response_id: str | None) -> KeptResponse | None:
        if response_id is None:
            return None
        kept = self._store.get(self._key_id, response_id)
        if kept is None:
            raise ApiError(
                f"{_unknown(response_id)}; send the whole conversation as input instead",
                ErrorKind(400, INVALID_REQUEST, "previous_response_not_found"),
                param="previous_response_id",
            )
        return kept

    def _followed(self, item: Item) -> Item:
        if not isinstance(item, Reference):
            return item
        found = self._store.find_item(self._key_id, item.item_id)
        if found is None:
            raise InvalidRequest(
                f"input refers to the item {item.item_id[:100]!r}, which is not kept; send the item itself",
                param="input",
            )
        return found


def response_not_found(response_id: str) -> ApiError:
    return ApiError(_unknown(response_id), ErrorKind(404, INVALID_REQUEST, "response_not_found"))


async def fitting(
    client: EngineClient, wire: ResponsesRequest, items: Sequence[Item]
) -> Sequence[Item]:
    """For `truncation: auto`: all of them, or as many of the newest as leave room for the reply.

    What stays begins with a turn of the user, and all instructions stay. If not even the newest turn fits, it stays:
    the engine says then what is too long.
    """
    window = client.snapshot().window_tokens
    room = min(wire.max_output_tokens or window // _REPLY_SHARE, window // 2)

    async def fits(some: Sequence[Item]) -> bool:
        count = await client.count_tokens(chat_of(wire, some))
        return count is None or count + room <= window

    if await fits(items):
        return items
    starts = [index for index, item in enumerate(items) if _is_of(item, "user")]
    low, high = 0, max(len(starts) - 1, 0)
    while low < high:  # the first start from which the rest fits
        middle = (low + high) // 2
        if await fits(_from(items, starts[middle])):
            high = middle
        else:
            low = middle + 1
    return _from(items, starts[low]) if starts else items


def _from(items: Sequence[Item], start: int) -> Sequence[Item]:
    return [item for item in items[:start] if _is_of(item, "system")] + list(items[start:])


def _is_of(item: Item, role: str) -> bool:
    return isinstance(item, Said) and item.role == role


def _unknown(response_id: str) -> str:
    return f"no response {response_id[:100]!r} is kept: it never was, was deleted, or has made room for newer ones"
