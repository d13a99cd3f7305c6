"""Responses that later ones may go on from, kept in memory: the newest ones of each key, within bounds.

Server thread.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from studio.server.framing import Json
from studio.server.responses.items import Item

MAX_RESPONSES = 1024
MAX_BYTES = 64 << 20
KEY_SHARE = 4
"""No key has more than one in so many of either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResponse:
    """A response that has ended."""

    response: Json
    before: tuple[Item, ...]
    """What it went on from."""
    inputs: tuple[Item, ...]
    """What was sent with it."""
    outputs: tuple[Item, ...]
    size_bytes: int
    """About what all of it takes; what several responses have in common counts for each."""

    @property
    def context(self) -> tuple[Item, ...]:
        """What the next one goes on from."""
        return self.before + self.inputs + self.outputs

    @property
    def response_id(self) -> str:
        return str(self.response["id"])


class ResponseStore:
    """One for each server. A key sees only its own; the least recently used ones make room."""

    def __init__(self, *, max_responses: int = MAX_RESPONSES, max_bytes: int = MAX_BYTES) -> None:
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._kept: OrderedDict[tuple[str, str], KeptResponse] = OrderedDict()
        self._num_bytes = 0
        self._items: dict[tuple[str, str], Item] = {}
        """Those that came with a response that is kept, by key and id."""

    def put(self, key_id: str, kept: KeptResponse) -> None:
        """Keep it, if it is not larger than all that a key may have."""
        self.drop(key_id, kept.response_id)
        if kept.size_bytes > self._max_bytes // KEY_SHARE:
            return
        self._kept[key_id, kept.response_id] = kept
        self._num_bytes += kept.size_bytes
        for item in kept.inputs + kept.outputs:
            self._items[key_id, item.wire["id"]] = item
        self._make_room(key_id)

    def get(self, key_id: str, response_id: str) -> KeptResponse | None:
        kept = self._kept.get((key_id, response_id))
        if kept is not None:
            self._kept.move_to_end((key_id, response_id))
        return kept

    def drop(self, key_id: str, response_id: str) -> bool:
        """Forget it and its items; whether it was there."""
        kept = self._kept.pop((key_id, response_id), None)
        if kept is None:
            return False
        self._num_bytes -= kept.size_bytes
        for item in kept.inputs + kept.outputs:
            name = (key_id, item.wire["id"])
            if self._items.get(name) is item:
                del self._items[name]
        return True

    def find_item(self, key_id: str, item_id: str) -> Item | None:
        """An item that came with a response that is kept."""
        return self._items.get((key_id, item_id))

    def _make_room(self, key_id: str) -> None:
        own = [name for name in self._kept if name[0] == key_id]
        own_bytes = sum(self._kept[name].size_bytes for name in own)
        while own and (
            len(own) > self._max_responses // KEY_SHARE or own_bytes > self._max_bytes // KEY_SHARE
        ):
            oldest = own.pop(0)
            own_bytes -= self._kept[oldest].size_bytes
            self.drop(*oldest)
        while len(self._kept) > self._max_responses or self._num_bytes > self._max_bytes:
            self.drop(*next(iter(self._kept)))
