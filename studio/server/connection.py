"""One client's connection: uvicorn's HTTP/1.1, ended where a client keeps it without using it.

Server thread. A client that never ends its question, or takes nothing of the answer, is cut; one that works slowly is
not. What is no HTTP is answered in JSON, and is no warning in the log: any program may send it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from dataclasses import dataclass, field
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from studio.server.errors import INVALID_REQUEST, SERVER_ERROR, ApiError, ErrorKind, error_body
from studio.server.json_text import JsonAnswer

if sys.platform != "win32":
    import resource

MAX_HEAD_BYTES = 16 << 10
_FIRST_PROBE_S, _PROBE_EVERY_S, _NUM_PROBES = 60, 15, 4
"""When the system asks a silent peer whether it is still there: one whose machine is gone says nothing."""

logger = logging.getLogger(__name__)


def _most_connections() -> int:
    """Half of the files that the system lets this program have open, 256 on some, and no more than 500."""
    if sys.platform == "win32":
        return 500
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 500 if allowed == resource.RLIM_INFINITY else max(1, min(500, allowed // 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How long a client may take, in seconds, and how many connections there may be."""

    head_s: float = 20.0
    """From connecting, or from the first byte of a further request, until the head of a request is there."""
    body_s: float = 30.0
    """For a body, and `body_bytes_per_s` more for what has come of it."""
    body_bytes_per_s: int = 4096
    idle_s: int = 75
    """Between requests. Most clients keep a connection for less; one closed just as it is used again fails them."""
    stall_s: float = 60.0
    """Without taking a byte of what has been written for it; at most twice that."""
    most_connections: int = field(default_factory=_most_connections)
    """Beyond it, whoever has waited longest without asking is closed."""

    def __post_init__(self) -> None:
        low = min(self.head_s, self.body_s, self.idle_s, self.stall_s, self.body_bytes_per_s)
        if low <= 0 or self.most_connections < 1:
            raise ValueError(f"every limit of a connection must be above 0: {self}")


class GuardedConnection(H11Protocol):
    """A connection under `ConnectionLimits`."""

    conn: _Parser

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _Parser(h11.SERVER, MAX_HEAD_BYTES)
        self._limits = limits
        self._begun_s = self.loop.time()
        self._asking: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._unsent: int | None = None
        """Bytes that waited for the client at the last look, if nothing more was being written."""

    @property
    def is_asked(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        _probe_when_silent(transport.get_extra_info("socket"))
        self._look = self.loop.call_later(self._limits.stall_s, self._look_for_a_stall)
        self._time_the_question()
        if len(self.connections) > self._limits.most_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._asking, self._look):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_the_question()
        # uvicorn reads no more while a further request waits, and so would not hear that the client has left.
        num_waiting = len(self.conn.trailing_data[0])
        if self.cycle is not None and num_waiting + len(self.cycle.body) <= HIGH_WATER_LIMIT:
            self.flow.resume_reading()

    def handle_events(self) -> None:
        super().handle_events()
        if self.conn.problem is not None and not self.transport.is_closing():
            self._refuse(_no_http(self.conn.problem))

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if (
            self.conn.their_state is h11.SEND_BODY
        ):  # what still comes of its question is thrown away
            self._time_the_question()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unsent = None

    def _should_upgrade(self) -> bool:
        """Never, and without uvicorn's warnings: asking is allowed, and the answer in HTTP/1.1 means no."""
        return False

    def _time_the_question(self) -> None:
        """A request must be there in time; how long nothing at all may come between two is uvicorn's to measure."""
        if not self.is_asked and self._asking is None:
            self._begun_s = self.loop.time()
            self._asking = self.loop.call_later(self._limits.head_s, self._give_up)
        elif self.is_asked and self._asking is not None:
            self._asking.cancel()
            self._asking = None

    def _give_up(self) -> None:
        has_begun = self.conn.our_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if has_begun and not self.transport.is_closing():
            self._refuse(_too_slow(self._limits.head_s))
        self.transport.close()

    def _make_room(self) -> None:
        """Close whoever has waited longest without asking: this one, where all others are being answered."""
        others = [one for one in self.connections if isinstance(one, GuardedConnection)]
        waiting = [one for one in others if not one.is_asked and not one.transport.is_closing()]
        oldest = min(waiting, key=lambda one: one._begun_s, default=self)
        logger.info("over %d connections; one is closed", self._limits.most_connections)
        if oldest is self:
            self._refuse(_too_many(self._limits.most_connections))
        oldest.transport.close()

    def _look_for_a_stall(self) -> None:
        """Cut a client that has taken nothing since the last look, though all was written that could be."""
        self._look = self.loop.call_later(self._limits.stall_s, self._look_for_a_stall)
        unsent = self.transport.get_write_buffer_size()
        if not unsent or not (self.flow.write_paused or self.transport.is_closing()):
            self._unsent = None
        elif self._unsent is None or unsent < self._unsent:
            self._unsent = unsent
        else:
            logger.info("a client took nothing for %g s and is cut", self._limits.stall_s)
            self.transport.abort()

    def _refuse(self, error: ApiError) -> None:
        """Answer with an error, unless an answer has begun already, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = JsonAnswer(error_body(error), error.kind.status, error.headers)
            headers = [*answer.raw_headers, (b"connection", b"close")]
            head = h11.Response(status_code=answer.status_code, headers=headers)
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:  # what the application still writes goes nowhere
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()


class _Parser(h11.Connection):
    """h11's, which keeps what is wrong with a client's bytes instead of raising it."""

    problem: h11.RemoteProtocolError | None = None

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self.problem is not None:
            return h11.NEED_DATA
        try:
            return super().next_event()
        except h11.RemoteProtocolError as error:
            self.problem = error
            return h11.NEED_DATA


def _probe_when_silent(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _FIRST_PROBE_S),
        ("TCP_KEEPINTVL", _PROBE_EVERY_S),
        ("TCP_KEEPCNT", _NUM_PROBES),
    ):
        if option := getattr(socket, name, None):  # which of them there are depends on the system
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def _no_http(problem: h11.RemoteProtocolError) -> ApiError:
    if problem.error_status_hint == 431:
        return ApiError(
            f"the head of the request has over {MAX_HEAD_BYTES} bytes; send shorter headers or a shorter path",
            ErrorKind(431, INVALID_REQUEST, "request_head_too_large"),
        )
    return ApiError(
        f"this is no request in HTTP/1.1: {problem}; use an HTTP client, and http:// in the address",
        ErrorKind(problem.error_status_hint, INVALID_REQUEST, "bad_request"),
    )


def _too_slow(limit_s: float) -> ApiError:
    return ApiError(
        f"the head of the request was not there after {limit_s:g} s; send it at once",
        ErrorKind(408, INVALID_REQUEST, "request_timeout"),
    )


def _too_many(limit: int) -> ApiError:
    return ApiError(
        f"{limit} requests are being answered, each on a connection, which is the limit; ask again later",
        ErrorKind(503, SERVER_ERROR, "too_many_connections"),
        headers={"retry-after": "2"},
    )
