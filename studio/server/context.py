"""What the routes are given, and the one way in which they answer a generation. Server thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from engine.client import EngineClient
from studio.server.body import read_body
from studio.server.generation import Generation, whole_reply
from studio.server.live_requests import LiveRequests
from studio.server.protocol import GenerationFields, WireModel
from studio.server.sse import EventStream, StreamTimings

Wire = TypeVar("Wire", bound=WireModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """Built once per server, on its loop."""

    client: EngineClient
    live: LiveRequests = field(default_factory=LiveRequests)
    timings: StreamTimings = field(default_factory=StreamTimings)

    async def read(self, http: HttpRequest, wire: type[Wire]) -> Wire:
        """The request's body; a slow sender does not hold up the end of the server."""
        return await self.live.run(read_body(http, wire), receive=None)

    async def answer(
        self, http: HttpRequest, generation: Generation, wire: GenerationFields
    ) -> Response:
        """The reply, streamed or whole; the client leaving ends the generation either way."""
        if wire.stream:
            timings = self.timings
            if wire.sse_ping_interval is not None:
                timings = StreamTimings.of_ping_interval(wire.sse_ping_interval)
            return EventStream(self.client, generation, live=self.live, timings=timings)
        work = whole_reply(self.client, generation)
        return JSONResponse(await self.live.run(work, receive=http.receive))
