"""Clients that speak raw bytes to the server on its thread, and the server for them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fakes.http_driver import CHAT, HELLO, TIMEOUT_S, WatchedEngine, read_to_end
from studio.models.server_settings import ServerSettings
from studio.server.connection import ConnectionLimits
from studio.server.thread import ServerThread

_LOOKS = 2000
BODY = json.dumps(HELLO).encode()
ASK = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def served(engine: WatchedEngine, limits: ConnectionLimits | None = None) -> Iterator[ServerThread]:
    server = ServerThread(engine, ServerSettings(port=0), limits=limits)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def connect(server: ServerThread) -> socket.socket:
    return socket.create_connection(server.address, timeout=TIMEOUT_S)


def exchange(server: ServerThread, *parts: bytes) -> bytes:
    """Send these and return all that is answered until the server closes."""
    with connect(server) as connection:
        for part in parts:
            connection.sendall(part)
        return read_to_end(connection)


def head_of(path: str = CHAT, *headers: str, version: str = "1.1") -> bytes:
    lines = (f"POST {path} HTTP/{version}", "Host: localhost", *headers)
    return "\r\n".join((*lines, "", "")).encode()


def code_in(answer: bytes) -> str:
    """The code of an error in JSON."""
    _, _, body = answer.partition(b"\r\n\r\n")
    return str(json.loads(body)["error"]["code"])


def until(is_so: Callable[[], bool], what: str) -> None:
    """Look until it is so. Raises AssertionError when that takes too long."""
    for _ in range(_LOOKS):
        if is_so():
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"still not: {what}")
