"""Holds back requests of a key that has its share of the pool. Server thread.

The engine's own admission knows no keys, so this is done before a request is submitted: what a key's requests hold
(as the engine's last snapshot says, at least what they are expected to take) and the new one must stay within the
share. One alone is always let in, those of a key in their order, and what runs is left alone: a reply may outgrow the
share, and keeps others of its key out then.

A reply without a limit, which most programs ask for, is expected to be as long as the longest of the key's last few: a
program's replies are much alike, and to count each with all it could become would let them in one at a time only. So it
is with the first, of which nothing is known.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager

from engine.api import Chat, EngineSnapshot, Infill, Request, RequestEvent, Text, TokenDelta, Wanted
from engine.client import EngineClient
from studio.models.server_keys import Caller

_BYTES_PER_TOKEN = 4
"""What text takes in most tokenizers; only a guess until the engine has read the prompt."""
_TOKENS_PER_MESSAGE = 8
_LATELY = 8
"""Replies without a limit by which the next is judged."""


class Place:
    """A request's place at the gate; it may go on once `is_in`."""

    def __init__(self, requests: tuple[Request, ...]) -> None:
        self.run_ids = frozenset(request.request_id for request in requests)
        self._requests = requests
        self._written = {each.request_id: 0 for each in requests if _has_no_limit(each)}
        """Tokens of the replies without a limit."""
        self._let_in = asyncio.Event()

    @property
    def longest_unlimited(self) -> int:
        """Tokens of the longest reply without a limit so far."""
        return max(self._written.values(), default=0)

    def hear(self, event: RequestEvent) -> None:
        """What becomes of its requests."""
        if isinstance(event, TokenDelta) and event.request_id in self._written:
            self._written[event.request_id] += len(event.token_ids)

    def expected_tokens(self, unlimited_tokens: int, window_tokens: int) -> int:
        """Of all its requests, where a reply without a limit takes `unlimited_tokens`."""
        return sum(
            min(_prompt_tokens(each) + _reply_tokens(each, unlimited_tokens), window_tokens)
            for each in self._requests
        )

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
        self._lately: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_LATELY))
        """Of each key, how long its last replies without a limit were."""

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
            if place.longest_unlimited:
                self._lately[caller.key_id].append(place.longest_unlimited)
            self._advance(caller)

    def _advance(self, caller: Caller) -> None:
        """Let in who is next, as long as there is room in the share."""
        line, inside = self._line[caller.key_id], self._inside[caller.key_id]
        snapshot = self._client.snapshot()
        share = _pool_tokens(snapshot) * caller.share_percent // 100
        unlimited_tokens = max(self._lately[caller.key_id], default=share)

        def expected(place: Place) -> int:
            return place.expected_tokens(unlimited_tokens, snapshot.window_tokens)

        while line:
            held = sum(max(_held_tokens(place, snapshot), expected(place)) for place in inside)
            if inside and held + expected(line[0]) > share:
                return
            place = line.pop(0)
            inside.append(place)
            place.let_in()
        if not inside:
            del self._line[caller.key_id], self._inside[caller.key_id]


def _pool_tokens(snapshot: EngineSnapshot) -> int:
    return snapshot.pool.total_pages * snapshot.pool.page_tokens


def _held_tokens(place: Place, snapshot: EngineSnapshot) -> int:
    return sum(run.held_tokens for run in snapshot.runs if run.request_id in place.run_ids)


def _has_no_limit(request: Request) -> bool:
    return request.wants is Wanted.TEXT and request.max_tokens is None


def _reply_tokens(request: Request, unlimited_tokens: int) -> int:
    return unlimited_tokens if _has_no_limit(request) else request.max_tokens or 0


def _prompt_tokens(request: Request) -> int:
    prompt = request.prompt
    match prompt:
        case Chat():
            size = sum(len(text.encode()) for text in _texts_of(prompt))
            return size // _BYTES_PER_TOKEN + _TOKENS_PER_MESSAGE * len(prompt.messages)
        case Text():
            return len(prompt.text.encode()) // _BYTES_PER_TOKEN
        case Infill():
            size = len((prompt.context + prompt.before + prompt.after).encode())
            return size // _BYTES_PER_TOKEN
        case _:
            return len(prompt.ids)


def _texts_of(chat: Chat) -> Iterator[str]:
    for message in chat.messages:
        yield message.content
        for call in message.tool_calls:
            yield call.arguments
    for tool in chat.tools:
        yield tool.description
        yield tool.parameters
