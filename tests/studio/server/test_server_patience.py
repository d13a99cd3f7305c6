"""Clients that keep a connection without using it: how long they may, and that nothing of theirs is left."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress

import pytest
import uvicorn
from starlette.responses import Response
from uvicorn.server import ServerState

from fakes.http_driver import (
    CHAT,
    HELLO,
    TEXT,
    TIMEOUT_S,
    WatchedEngine,
    on_a_loop,
    post_and_stay,
    read_to_end,
    read_until,
)
from fakes.raw_client import ASK, code_in, connect, exchange, head_of, served, until
from studio.server.connection import ConnectionLimits, GuardedConnection
from studio.server.thread import ServerThread

SOON_S = 0.2
"""A limit that is meant to be reached."""
LONG_TEXT = "x" * (16 << 20)
"""More than the buffers of both sides of a connection hold."""


@pytest.fixture
def engine() -> WatchedEngine:
    return WatchedEngine(auto=False)


def connections_of(server: ServerThread) -> set[GuardedConnection]:
    """Those that the server has open."""
    assert server._stop_switch is not None
    return server._stop_switch.server.server_state.connections  # type: ignore[return-value]


def ask_and_stay(server: ServerThread, sent: bytes, marker: bytes) -> tuple[socket.socket, bytes]:
    """A connection on which `sent` was answered up to `marker`; made anew where we were not in time to ask."""
    while True:
        connection = connect(server)
        with suppress(OSError, AssertionError):
            connection.sendall(sent)
            return connection, read_until(connection, marker)
        connection.close()


class FullPipe(asyncio.Transport):
    """A connection that takes no more than the test lets it."""

    def __init__(self) -> None:
        self.socket = socket.socket()
        super().__init__({"socket": self.socket})
        self.unsent = 0
        self.is_aborted = False

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes) -> None:
        self.unsent += len(data)

    def abort(self) -> None:
        self.is_aborted = True

    def close(self) -> None:
        self.socket.close()


def a_connection() -> GuardedConnection:
    config = uvicorn.Config(Response(), log_config=None)
    return GuardedConnection(config, ServerState(), {}, limits=ConnectionLimits())


def test_a_client_that_asks_nothing_is_closed(engine: WatchedEngine) -> None:
    with served(engine, ConnectionLimits(head_s=SOON_S)) as server, connect(server) as silent:
        assert read_to_end(silent) == b""


def test_a_head_that_never_ends_is_answered_and_closed(engine: WatchedEngine) -> None:
    with served(engine, ConnectionLimits(head_s=SOON_S)) as server, connect(server) as slow:
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n")
        answer = b""
        slow.settimeout(0.02)
        while not answer:
            with suppress(TimeoutError):
                slow.sendall(b"X-More: 1\r\n")
                answer = slow.recv(65536)
        slow.settimeout(TIMEOUT_S)
        with suppress(ConnectionResetError):  # for what it had not read of ours
            answer += read_to_end(slow)  # the body comes after the head
    assert answer.startswith(b"HTTP/1.1 408")
    assert code_in(answer) == "request_timeout"


def test_a_further_head_that_never_ends_is_closed_too(engine: WatchedEngine) -> None:
    with served(engine, ConnectionLimits(head_s=SOON_S)) as server:
        slow, _ = ask_and_stay(server, ASK, b'"data"')
        with slow:
            slow.sendall(b"GET /v1/models HTTP/1.1\r\n")
            assert b"408" in read_to_end(slow)


def test_a_body_that_never_ends_is_answered(engine: WatchedEngine) -> None:
    with served(engine, ConnectionLimits(body_s=SOON_S)) as server, connect(server) as slow:
        slow.sendall(head_of(CHAT, "Content-Length: 5000") + b"{")
        assert read_until(slow, b"request_timeout").startswith(b"HTTP/1.1 408")
    assert not engine.requests


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_still_comes_of_a_refused_body_is_not_waited_for_for_ever(
    engine: WatchedEngine, *, goes_on: bool
) -> None:
    def send_on() -> None:
        while goes_on:
            refused.sendall(b" " * 1000)

    with served(engine, ConnectionLimits(head_s=SOON_S)) as server:
        head = head_of(CHAT, "Content-Length: 99999999999")
        refused, answer = ask_and_stay(server, head, b"request_too_large")
        assert answer.startswith(b"HTTP/1.1 413")
        with refused, suppress(OSError):
            send_on()
            read_to_end(refused)
        until(lambda: not connections_of(server), "the connection is closed")


def test_an_idle_connection_is_closed(engine: WatchedEngine) -> None:
    with served(engine, ConnectionLimits(idle_s=1)) as server, connect(server) as idle:
        idle.sendall(ASK)
        assert read_to_end(idle).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", [CHAT, TEXT])
def test_a_stream_whose_reader_takes_nothing_is_cut_and_its_request_ended(
    path: str, engine: WatchedEngine
) -> None:
    body = {"stream": True, **(HELLO if path == CHAT else {"prompt": "a"})}
    with (
        served(engine, ConnectionLimits(stall_s=SOON_S)) as server,
        post_and_stay(server.address, path, body),
    ):
        ids = engine.wait_for_requests()
        engine.say(ids[0], LONG_TEXT)
        assert engine.wait_for_aborts() == ids


def test_a_whole_answer_that_nobody_takes_is_cut(engine: WatchedEngine) -> None:
    with (
        served(engine, ConnectionLimits(stall_s=SOON_S, idle_s=1)) as server,
        post_and_stay(server.address, CHAT, HELLO) as idle,
    ):
        ids = engine.wait_for_requests()
        engine.say(ids[0], LONG_TEXT)
        engine.finish(ids[0])
        until(lambda: not connections_of(server), "the connection is cut")
        assert len(read_to_end(idle)) < len(LONG_TEXT)


@on_a_loop
async def test_a_reader_who_takes_something_between_two_looks_is_not_cut() -> None:
    pipe = FullPipe()
    connection = a_connection()
    connection.connection_made(pipe)
    connection.pause_writing()
    for unsent in (70_000, 69_999, 69_998):
        pipe.unsent = unsent
        connection._look_for_a_stall()
    connection.resume_writing()
    connection.pause_writing()
    pipe.unsent = 80_000
    connection._look_for_a_stall()
    assert not pipe.is_aborted
    connection._look_for_a_stall()
    assert pipe.is_aborted
    connection.connection_lost(None)


@on_a_loop
async def test_a_peer_whose_machine_is_gone_is_found_out() -> None:
    pipe = FullPipe()
    connection = a_connection()
    connection.connection_made(pipe)
    assert pipe.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    connection.connection_lost(None)


def test_stopping_does_not_wait_for_a_reader_who_takes_nothing(engine: WatchedEngine) -> None:
    with served(engine) as server, post_and_stay(server.address, CHAT, {**HELLO, "stream": True}):
        ids = engine.wait_for_requests()
        engine.say(ids[0], LONG_TEXT)
        engine.say(ids[0], LONG_TEXT)
        server.stop()
        assert engine.wait_for_aborts() == ids


def test_beyond_the_most_connections_whoever_waits_longest_is_closed(engine: WatchedEngine) -> None:
    with (
        served(engine, ConnectionLimits(most_connections=3)) as server,
        ExitStack() as open_ones,
    ):
        answered = open_ones.enter_context(post_and_stay(server.address, CHAT, HELLO))
        (request_id,) = engine.wait_for_requests()
        first, second, third = (open_ones.enter_context(connect(server)) for _ in range(3))
        assert read_to_end(first) == b""
        for other in (second, third):
            other.sendall(ASK)
            assert read_until(other, b'"data"').startswith(b"HTTP/1.1 200")
        engine.say(request_id, "Once")
        engine.finish(request_id)
        assert b"Once" in read_until(answered, b"Once")


def test_beyond_the_most_requests_a_newcomer_is_told_when_to_come_back(
    engine: WatchedEngine,
) -> None:
    with (
        served(engine, ConnectionLimits(most_connections=1)) as server,
        post_and_stay(server.address, CHAT, HELLO),
    ):
        engine.wait_for_requests()
        answer = exchange(server)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"\r\nretry-after: " in answer.lower()
    assert code_in(answer) == "too_many_connections"


def test_limits_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        ConnectionLimits(stall_s=0)
