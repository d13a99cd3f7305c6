"""A reply as a stream of events: when to write what the narrator says, and how the stream opens and ends.

Server thread. The stream opens (status 200) with the first text or notice, or after a second of silence; an error
before that has a status of its own, a later one is an event that ends the stream.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.client import EngineClient
from engine.errors import EngineError
from studio.server.error_response import error_response
from studio.server.errors import ApiError, ClientLeft, reader_too_slow
from studio.server.generation import Generation, at_the_gate, open_choices, pass_gate
from studio.server.live_requests import LiveRequests
from studio.server.narrator import HEARTBEAT_HEADER, Narrator, read_heartbeat
from studio.server.share_gate import Place, ShareGate

MOST_UNREAD = 1 << 16
"""Events, about as many tokens, that may wait for a slow reader: replies that go on beyond the window never end."""
_LOOK_AGAIN_S = 0.1
_HEADERS = [
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),  # a proxy that collects the stream would undo it
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamTimings:
    """How long a stream may be silent, in seconds."""

    open_after_s: float = 1.0
    """Until the headers are sent, at the latest; but see `verdict_s`."""
    verdict_s: float = 5.0
    """For so long the headers of a prompt that is still being read are held back: it may be refused."""
    keepalive_s: float | None = 30.0
    """While text is coming; None: for ever."""
    parked_keepalive_s: float = 1.5
    """While a choice stands in line, is being read or is parked. Clients count on 2.2 s, on a busy machine too."""

    @classmethod
    def of_ping_interval(cls, interval_s: float) -> StreamTimings:
        """As --sse-ping-interval says: it caps the keepalive of parked choices too; 0 and below turn only pings off."""
        if interval_s <= 0:
            return cls(keepalive_s=None)
        parked_s = min(interval_s, cls().parked_keepalive_s)
        return cls(keepalive_s=interval_s, parked_keepalive_s=parked_s)


class _Writer:
    """Sends the body piece by piece and knows when it last did."""

    def __init__(self, send: Send, content_type: bytes, open_after_s: float) -> None:
        self._send = send
        self._headers = [(b"content-type", content_type), *_HEADERS]
        self._clock = asyncio.get_running_loop().time
        self.is_open = False
        self.is_complete = False
        self.begun_s = self.last_write_s = self._clock()
        self.opens_s = self.begun_s + open_after_s
        """When the headers are sent, at the latest."""

    async def write(self, data: bytes, *, is_last: bool = False) -> None:
        if not self.is_open:
            await self._send(
                {"type": "http.response.start", "status": 200, "headers": self._headers}
            )
            self.is_open = True
        self.is_complete = is_last
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})
        self.last_write_s = self._clock()
        # Other streams have their turn, and a client that has left is noticed before the next write.
        await asyncio.sleep(0)


class EventStream(Response):
    """The answer to a request with `"stream": true`. A client that leaves ends the generation at once."""

    def __init__(
        self,
        client: EngineClient,
        generation: Generation,
        *,
        live: LiveRequests,
        timings: StreamTimings,
        gate: ShareGate,
    ) -> None:
        super().__init__()
        self._client = client
        self._generation = generation
        self._live = live
        self._timings = timings
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        note = self._generation.note
        try:
            heartbeat = read_heartbeat(Headers(scope=scope).get(HEARTBEAT_HEADER))
        except EngineError as error:
            note.fail(str(error))
            await error_response(error)(scope, receive, send)
            return
        content_type = self._generation.shape.framing.content_type
        writer = _Writer(send, content_type, self._timings.open_after_s)
        narrator = Narrator(self._generation, heartbeat)
        try:
            await self._live.run(self._play(writer, narrator), receive=receive)
        except ClientLeft:
            note.leave()
        except (ApiError, EngineError) as error:
            if writer.is_complete:  # the server stopped in the moment after the end
                return
            note.fail(str(error))
            if writer.is_open:
                await writer.write(narrator.failure(error), is_last=True)
            else:
                await error_response(error)(scope, receive, send)

    async def _play(self, writer: _Writer, narrator: Narrator) -> None:
        with at_the_gate(self._gate, self._generation) as place:
            if not place.is_in:
                await self._pass_gate(place, writer, narrator)
            with open_choices(self._client, self._generation, place) as events:
                while True:
                    try:
                        async with asyncio.timeout_at(self._deadline(writer, narrator)):
                            index, event = await events.get()
                    except TimeoutError:
                        if writer.is_open or not self._awaits_verdict(writer):
                            await writer.write(narrator.keepalive())
                        continue
                    if events.qsize() > MOST_UNREAD:
                        raise reader_too_slow(events.qsize())
                    data = narrator.tell(index, event)
                    if narrator.is_done:
                        break
                    if data:
                        await writer.write(data)
            await writer.write(data, is_last=True)

    async def _pass_gate(self, place: Place, writer: _Writer, narrator: Narrator) -> None:
        """Wait for room in the key's share, and show that the stream is alive meanwhile."""
        passing = asyncio.ensure_future(pass_gate(place, self._generation))
        try:
            while not passing.done():
                try:
                    async with asyncio.timeout_at(self._deadline(writer, narrator)):
                        await asyncio.wait((passing,))
                except TimeoutError:
                    await writer.write(narrator.keepalive())
            passing.result()
        finally:
            passing.cancel()

    def _awaits_verdict(self, writer: _Writer) -> bool:
        """Whether a prompt is still being read, and there is time; then the stream stays closed for a moment more."""
        now_s = asyncio.get_running_loop().time()
        ids = {request.request_id for request in self._generation.requests}
        runs = self._client.snapshot().runs
        is_being_read = any(not run.prompt_tokens for run in runs if run.request_id in ids)
        if not is_being_read or now_s >= writer.begun_s + self._timings.verdict_s:
            return False
        writer.opens_s = now_s + _LOOK_AGAIN_S
        return True

    def _deadline(self, writer: _Writer, narrator: Narrator) -> float | None:
        """When the silence has lasted long enough; None: it may last."""
        if not writer.is_open:
            return writer.opens_s
        if narrator.is_waited_for:
            return writer.last_write_s + self._timings.parked_keepalive_s
        if self._timings.keepalive_s is None:
            return None
        return writer.last_write_s + self._timings.keepalive_s
