"""Holds back requests of a key that has its share of the pool. Server thread.

The engine's own admission knows no keys, so this is done before a request is submitted: what a key's requests hold
(as the engine's last snapshot says, at least what they were expected to take) and the new one must stay within the
share. One alone is always let in, and those of a key in their order. A reply without a limit may outgrow its share.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from engine.api import Chat, EngineSnapshot, Infill, Request, Text
from engine.client import EngineClient
from studio.models.server_keys import Caller

_BYTES_PER_TOKEN = 4
"""What text takes in most tokenizers; only a guess until the engine has read the prompt."""
_TOKENS_PER_MESSAGE = 8


class Place:
    """A request's place at the gate; it may go on once `is_in`."""

    def __init__(self, requests: tuple[Request, ...]) -> None:
        self.run_ids = frozenset(request.request_id for request in requests)
        self.expected_tokens = sum(map(_expected_tokens, requests))
        self._let_in = asyncio.Event()

    @property
    def is_in(self) -> bool:
        return self._let_in.is_set()

    def let_in(self) -> None:
        self._let_in.set()

    async def wait(self) -> None:
        await self._let_in.wait()


class ShareGate:
    """One for each server."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._key_ids: dict[str, str] = {}
        """Of the requests at the gate and behind it, whose key asked."""
        self._inside: defaultdict[str, list[Place]] = defaultdict(list)
        self._line: defaultdict[str, list[Place]] = defaultdict(list)

    def key_id_of(self, run_id: str) -> str:
        """Whose key asked for a request in flight; empty where none did, as for the window's chats."""
        return self._key_ids.get(run_id, "")

    @contextmanager
    def place(self, caller: Caller, requests: tuple[Request, ...]) -> Iterator[Place]:
        """A place that is in at once where the share allows it; leaving the block gives it up."""
        place = Place(requests)
        self._key_ids.update(dict.fromkeys(place.run_ids, caller.key_id))
        try:
            with self._in_line(place, caller):
                yield place
        finally:
            for run_id in place.run_ids:
                del self._key_ids[run_id]

    @contextmanager
    def _in_line(self, place: Place, caller: Caller) -> Iterator[None]:
        if not caller.key_id or caller.share_percent >= 100:
            place.let_in()
            yield
            return
        self._line[caller.key_id].append(place)
        self._advance(caller)
        try:
            yield
        finally:
            for where in (self._line, self._inside):
                if place in where[caller.key_id]:
                    where[caller.key_id].remove(place)
            self._advance(caller)

    def _advance(self, caller: Caller) -> None:
        """Let in who is next, as long as there is room in the share."""
        line, inside = self._line[caller.key_id], self._inside[caller.key_id]
        snapshot = self._client.snapshot()
        share = _pool_tokens(snapshot) * caller.share_percent // 100
        while line:
            held = sum(_tokens_of(place, snapshot) for place in inside)
            if inside and held + line[0].expected_tokens > share:
                return
            place = line.pop(0)
            inside.append(place)
            place.let_in()
        if not inside:
            del self._line[caller.key_id], self._inside[caller.key_id]


def _pool_tokens(snapshot: EngineSnapshot) -> int:
    return snapshot.pool.total_pages * snapshot.pool.page_tokens


def _tokens_of(place: Place, snapshot: EngineSnapshot) -> int:
    held = sum(run.held_tokens for run in snapshot.runs if run.request_id in place.run_ids)
    return max(held, place.expected_tokens)


def _expected_tokens(request: Request) -> int:
    prompt = request.prompt
    match prompt:
        case Chat():
            size = sum(len(text.encode()) for text in _texts_of(prompt))
            tokens = size // _BYTES_PER_TOKEN + _TOKENS_PER_MESSAGE * len(prompt.messages)
        case Text():
            tokens = len(prompt.text.encode()) // _BYTES_PER_TOKEN
        case Infill():
            size = len((prompt.context + prompt.before + prompt.after).encode())
            tokens = size // _BYTES_PER_TOKEN
        case _:
            tokens = len(prompt.ids)
    return tokens + (request.max_tokens or 0)


def _texts_of(chat: Chat) -> Iterator[str]:
    for message in chat.messages:
        yield message.content
        for call in message.tool_calls:
            yield call.arguments
    for tool in chat.tools:
        yield tool.description
        yield tool.parameters
