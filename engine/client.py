"""The engine as an asyncio loop sees it: one EngineClient per loop, one wake-up of the loop at most per engine step
that holds something for it.

Runs on the loop's thread, except `_on_events`, which the engine thread calls. Standard library only.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeVar

from engine.api import (
    Command,
    DiskTrouble,
    EngineEvent,
    EnginePort,
    EngineSnapshot,
    Failed,
    Finished,
    ModelChanged,
    Parked,
    Prompt,
    Request,
    RequestEvent,
    Restored,
    Started,
    TextAnswer,
    TextQuestion,
    TokenDelta,
)
from engine.errors import InvalidRequest

_T = TypeVar("_T")

Hear = Callable[[RequestEvent], object]
"""Takes one event of a request; must not raise."""

Move = Started | Parked | Restored | Finished | Failed
"""A request has come into the pool, left it, or ended."""


class EngineClient:
    """Hands each request its own events; a slow consumer never stalls the engine.

    `is_quick` promises that whoever is handed an event is soon done with it: the engine may wait a little for that.
    With `rest_s` the loop is left alone for so long after a wake-up while nothing but tokens comes, which nobody reads
    that fast; then it hears of all of them at once.
    """

    def __init__(
        self,
        port: EnginePort,
        loop: asyncio.AbstractEventLoop,
        *,
        is_quick: bool = False,
        rest_s: float = 0.0,
    ) -> None:
        self._port = port
        self._loop = loop
        self._is_quick = is_quick
        self._rest_s = rest_s
        self._is_resting = False
        self._unheard: deque[tuple[EngineEvent, ...]] = deque()
        self._hearers: dict[str, Hear] = {}
        self._model_listeners: list[Callable[[ModelChanged], object]] = []
        self._trouble_listeners: list[Callable[[DiskTrouble], object]] = []
        self._move_listeners: list[Callable[[Move], object]] = []
        self._unsubscribe = port.subscribe(self._on_events)

    def stream(self, request: Request) -> RequestStream:
        """`async with client.stream(request) as events: async for event in events: ...`; leaving the block aborts."""
        return RequestStream(self, request)

    @contextmanager
    def hearing(self, request: Request, hear: Hear) -> Iterator[None]:
        """Submit, and call `hear` on this loop for each event up to and including the terminal one.

        Leaving the block aborts a request that has not ended. Raises InvalidRequest for an id that is in use.
        """
        request_id, has_ended = request.request_id, False
        if request_id in self._hearers:
            raise InvalidRequest(f"request id {request_id!r} is already alive; use a new one")

        def pass_on(event: RequestEvent) -> None:
            nonlocal has_ended
            has_ended = isinstance(event, Finished | Failed)
            hear(event)

        self._hearers[request_id] = pass_on
        try:
            self._port.submit(request)
            yield
        finally:
            del self._hearers[request_id]
            if not has_ended:
                self._port.abort(request_id)

    def abort(self, request_id: str) -> None:
        """End a request, also one that is not of this client; one that has ended is left alone."""
        self._port.abort(request_id)

    def control(self, command: Command) -> None:
        """Pass a command on; the outcome comes to `on_model_changed`."""
        self._port.control(command)

    def snapshot(self) -> EngineSnapshot:
        return self._port.snapshot()

    async def count_tokens(self, prompt: Prompt) -> int | None:
        """How many tokens the loaded model makes of a prompt; None if no model is loaded. Raises RequestError."""
        return await asyncio.to_thread(self._port.count_tokens, prompt)

    async def read_text(self, question: TextQuestion) -> TextAnswer:
        """See `EnginePort.read_text`."""
        return await asyncio.wrap_future(self._port.read_text(question))

    def on_model_changed(self, listener: Callable[[ModelChanged], object]) -> Callable[[], None]:
        """Call `listener` on this loop for every ModelChanged; the returned function ends it."""
        return _connect(self._model_listeners, listener)

    def on_disk_trouble(self, listener: Callable[[DiskTrouble], object]) -> Callable[[], None]:
        """The same for every DiskTrouble."""
        return _connect(self._trouble_listeners, listener)

    def on_move(self, listener: Callable[[Move], object]) -> Callable[[], None]:
        """The same for every Move of any request, whosever it is; after its own client has been handed it."""
        return _connect(self._move_listeners, listener)

    def close(self) -> None:
        """Hear no more events. Streams still open get none either."""
        self._unsubscribe()

    def _on_events(self, events: tuple[EngineEvent, ...]) -> threading.Event | None:
        if not any(map(self._is_wanted, events)):
            return None
        self._unheard.append(events)  # before the look: whoever ends the rest looks after it
        if self._is_resting and all(type(event) is TokenDelta for event in events):
            return None
        heard = threading.Event() if self._is_quick else None
        try:
            self._loop.call_soon_threadsafe(self._wake, heard)
        except RuntimeError:  # the loop has closed: nobody is left to hear
            return None
        return heard

    def _is_wanted(self, event: EngineEvent) -> bool:
        """Whether somebody may listen. Read from the engine's thread, which learns of a request after this does."""
        if isinstance(event, ModelChanged | DiskTrouble):
            return True
        is_told = bool(self._move_listeners) and isinstance(event, Move)
        return is_told or event.request_id in self._hearers

    def _wake(self, heard: threading.Event | None) -> None:
        events: list[EngineEvent] = []
        while self._unheard:
            events += self._unheard.popleft()
        self._fan_out(_joined(events) if self._rest_s else events)
        if self._rest_s and not self._is_resting:
            self._is_resting = True
            self._loop.call_later(self._rest_s, self._end_rest)
        if heard is not None:  # after those who wait for what was handed out just now
            self._loop.call_soon(heard.set)

    def _end_rest(self) -> None:
        self._is_resting = False
        if self._unheard:
            self._wake(None)

    def _fan_out(self, events: Iterable[EngineEvent]) -> None:
        for event in events:
            if isinstance(event, ModelChanged):
                for listener in tuple(self._model_listeners):
                    listener(event)
            elif isinstance(event, DiskTrouble):
                for listen in tuple(self._trouble_listeners):
                    listen(event)
            else:
                if (hear := self._hearers.get(event.request_id)) is not None:
                    hear(event)
                if self._move_listeners and isinstance(event, Move):
                    for tell in tuple(self._move_listeners):
                        tell(event)


def _joined(events: Iterable[EngineEvent]) -> Iterator[EngineEvent]:
    """The same with one delta for what a request has written in several steps, as long as nothing else came between."""
    written: dict[str, list[TokenDelta]] = {}
    for event in events:
        if type(event) is TokenDelta and not (event.reasoning or event.tool_calls):
            written.setdefault(event.request_id, []).append(event)
            continue
        yield from map(_one_delta, written.values())
        written.clear()
        yield event
    yield from map(_one_delta, written.values())


def _one_delta(deltas: list[TokenDelta]) -> TokenDelta:
    if len(deltas) == 1:
        return deltas[0]
    return TokenDelta(
        request_id=deltas[0].request_id,
        text="".join(one.text for one in deltas),
        token_ids=tuple(token_id for one in deltas for token_id in one.token_ids),
        logprobs=tuple(logprob for one in deltas for logprob in one.logprobs),
    )


def _connect(
    listeners: list[Callable[[_T], object]], listener: Callable[[_T], object]
) -> Callable[[], None]:
    listeners.append(listener)

    def disconnect() -> None:
        if listener in listeners:
            listeners.remove(listener)

    return disconnect


class RequestStream:
    """The events of one request, in order, up to and including the terminal one."""

    def __init__(self, client: EngineClient, request: Request) -> None:
        self._events: asyncio.Queue[RequestEvent] = asyncio.Queue()
        self._hearing = client.hearing(request, self._events.put_nowait)
        self._has_ended = False

    async def __aenter__(self) -> RequestStream:
        self._hearing.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._hearing.__exit__(kind, error, traceback)

    def __aiter__(self) -> RequestStream:
        return self

    async def __anext__(self) -> RequestEvent:
        if self._has_ended:
            raise StopAsyncIteration
        event = await self._events.get()
        self._has_ended = isinstance(event, Finished | Failed)
        return event
