"""A reply as server-sent events: chunks, notices of parking, keepalive comments, the end. Server thread.

The stream opens (status 200) with the first text or notice, or after a second of silence; an error before that has a
status of its own, a later one is an event that ends the stream, without [DONE].
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.api import Failed, Finished, Parked, RequestEvent, Restored, TokenDelta, Usage
from engine.client import EngineClient
from engine.errors import EngineError
from studio.server.errors import ApiError, ClientLeft, error_body, error_response
from studio.server.generation import Generation, open_choices
from studio.server.live_requests import LiveRequests
from studio.server.replies import Json, total_usage

DONE = b"data: [DONE]\n\n"
KEEPALIVE = b":\n\n"
PARKED_KEEPALIVE = b": preempt-keepalive\n\n"

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # a proxy that collects the stream would undo it
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimings:
    """How long a stream may be silent, in seconds."""

    open_after_s: float = 1.0
    """Until the headers are sent, at the latest."""
    keepalive_s: float = 10.0
    parked_keepalive_s: float = 2.0


def encode(data: Json) -> bytes:
    """One event. JSON has no line breaks of its own, so it is always one line."""
    return b"data: " + _JSON.encode(data).encode() + b"\n\n"


class _Writer:
    """Sends the body piece by piece and knows when it last did."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._clock = asyncio.get_running_loop().time
        self.is_open = False
        self.last_write_s = self._clock()

    async def open(self) -> None:
        if not self.is_open:
            await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            self.is_open = True
            self.last_write_s = self._clock()

    async def write(self, data: bytes, *, is_last: bool = False) -> None:
        await self.open()
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})
        self.last_write_s = self._clock()


class _Narrator:
    """Turns events into what the stream says, and knows which choices have begun, are parked or have ended."""

    def __init__(self, generation: Generation) -> None:
        self._shape = generation.shape
        self._generation = generation
        self._has_indices = len(generation.requests) > 1
        self._begun: set[int] = set()
        self._parked: set[int] = set()
        self._usages: dict[int, Usage] = {}

    @property
    def is_done(self) -> bool:
        return len(self._usages) == len(self._generation.requests)

    @property
    def is_parked(self) -> bool:
        """Whether at least one choice is parked."""
        return bool(self._parked)

    def tell(self, index: int, event: RequestEvent) -> bytes:
        """What to write; nothing for events that clients do not hear of. Raises the error of a choice that failed."""
        match event:
            case TokenDelta() if event.text or event.logprobs:
                return self._begin(index) + encode(self._shape.delta(index, event))
            case Parked():
                self._parked.add(index)
                return self._notice("preempted", index)
            case Restored():
                self._parked.discard(index)
                again = self._notice("recomputed", index) if event.recomputed_tokens else b""
                return self._notice("resumed", index) + again
            case Finished():
                self._parked.discard(index)
                self._usages[index] = event.usage
                return self._begin(index) + encode(self._shape.closing(index, event.reason))
            case Failed():
                raise event.error
        return b""

    def ending(self) -> bytes:
        """What follows the last choice."""
        if not self._generation.include_usage:
            return DONE
        usages = [self._usages[index] for index in range(len(self._usages))]
        usage = total_usage(usages, self._generation.choices_per_prompt)
        return encode(self._shape.usage_chunk(usage)) + DONE

    def _begin(self, index: int) -> bytes:
        if index in self._begun:
            return b""
        self._begun.add(index)
        opening = self._shape.opening(index)
        return b"" if opening is None else encode(opening)

    def _notice(self, word: str, index: int) -> bytes:
        return f": {word} {index}\n\n".encode() if self._has_indices else f": {word}\n\n".encode()


class EventStream(Response):
    """The answer to a request with `"stream": true`. A client that leaves ends the generation at once."""

    def __init__(
        self,
        client: EngineClient,
        generation: Generation,
        *,
        live: LiveRequests,
        timings: StreamTimings,
    ) -> None:
        super().__init__()
        self._client = client
        self._generation = generation
        self._live = live
        self._timings = timings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writer = _Writer(send)
        try:
            await self._live.run(self._play(writer), receive=receive)
        except ClientLeft:
            return
        except (ApiError, EngineError) as error:
            if writer.is_open:
                await writer.write(encode(error_body(error)), is_last=True)
            else:
                await error_response(error)(scope, receive, send)

    async def _play(self, writer: _Writer) -> None:
        narrator = _Narrator(self._generation)
        async with open_choices(self._client, self._generation.requests) as events:
            while not narrator.is_done:
                try:
                    async with asyncio.timeout_at(self._deadline(writer, narrator)):
                        index, event = await events.get()
                except TimeoutError:
                    await self._break_silence(writer, narrator)
                    continue
                if data := narrator.tell(index, event):
                    await writer.write(data)
        await writer.write(narrator.ending(), is_last=True)

    def _deadline(self, writer: _Writer, narrator: _Narrator) -> float:
        if not writer.is_open:
            return writer.last_write_s + self._timings.open_after_s
        if narrator.is_parked:
            return writer.last_write_s + self._timings.parked_keepalive_s
        return writer.last_write_s + self._timings.keepalive_s

    async def _break_silence(self, writer: _Writer, narrator: _Narrator) -> None:
        if not writer.is_open:
            await writer.open()
        else:
            await writer.write(PARKED_KEEPALIVE if narrator.is_parked else KEEPALIVE)
