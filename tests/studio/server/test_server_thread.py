"""The server on its thread and real sockets: starting, being refused, clients that leave, stopping."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from fakes.fake_engine import FakeEngine
from fakes.http_driver import (
    BODIES,
    CHAT,
    HELLO,
    TIMEOUT_S,
    WatchedEngine,
    post_and_stay,
    read_to_end,
    read_until,
)
from studio.models.errors import ServerStartError
from studio.models.server_settings import ServerSettings
from studio.server.thread import THREAD_NAME, ServerThread

FREE_PORT = ServerSettings(port=0)


@pytest.fixture
def engine() -> WatchedEngine:
    return WatchedEngine(auto=False)


@pytest.fixture
def server(engine: WatchedEngine) -> Iterator[ServerThread]:
    server = ServerThread(engine, FREE_PORT)
    server.start()
    yield server
    server.stop()


def health(server: ServerThread) -> int:
    return httpx.get(f"{server.url}/health", trust_env=False).status_code


def test_it_listens_when_start_returns_and_can_be_started_again(
    capfd: pytest.CaptureFixture[str],
) -> None:
    server = ServerThread(FakeEngine(), FREE_PORT)
    assert not server.is_running
    for _ in range(2):
        server.start()
        assert server.is_running
        assert server.address[0] == "127.0.0.1"
        assert server.address[1] > 0
        assert server.url == f"http://127.0.0.1:{server.address[1]}"
        assert health(server) == 200
        assert httpx.head(f"{server.url}/v1/models", trust_env=False).status_code == 200
        server.stop()
        assert not server.is_running
    server.stop()
    assert capfd.readouterr().out == ""


def test_it_runs_on_a_thread_of_its_own_and_leaves_signals_alone(server: ServerThread) -> None:
    assert THREAD_NAME in [thread.name for thread in threading.enumerate()]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_port_that_is_taken_is_named(server: ServerThread) -> None:
    port = server.address[1]
    second = ServerThread(FakeEngine(), ServerSettings(port=port))
    with pytest.raises(ServerStartError, match=f"port {port} on 127.0.0.1 is taken"):
        second.start()
    assert not second.is_running
    assert health(server) == 200


def test_starting_twice_is_refused(server: ServerThread) -> None:
    with pytest.raises(ServerStartError, match="already running"):
        server.start()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.invalid"])
@pytest.mark.parametrize("key", [None, ""])
def test_other_machines_need_a_key(host: str, key: str | None) -> None:
    server = ServerThread(FakeEngine(), ServerSettings(host=host, port=0, api_key=key))
    with pytest.raises(
        ServerStartError, match=r"API key is needed; set one, or listen on 127\.0\.0\.1"
    ):
        server.start()


def test_an_address_of_another_machine_is_refused() -> None:
    server = ServerThread(FakeEngine(), ServerSettings(host="192.0.2.1", port=0, api_key="k"))
    with pytest.raises(ServerStartError, match=r"192\.0\.2\.1 is no address of this machine"):
        server.start()


def test_a_public_address_is_served_with_its_key() -> None:
    server = ServerThread(FakeEngine(), ServerSettings(host="0.0.0.0", port=0, api_key="k"))
    server.start()
    url = f"http://127.0.0.1:{server.address[1]}/v1/models"
    assert httpx.get(url, trust_env=False).status_code == 401
    headers = {"x-api-key": "k", "host": "my-desk.lan"}
    assert httpx.get(url, headers=headers, trust_env=False).status_code == 200
    server.stop()


def test_localhost_is_found_by_its_number(engine: WatchedEngine) -> None:
    server = ServerThread(engine, ServerSettings(host="localhost", port=0))
    server.start()
    with socket.create_connection(("127.0.0.1", server.address[1]), timeout=TIMEOUT_S):
        pass
    server.stop()


@pytest.mark.parametrize("path", BODIES)
def test_a_client_that_leaves_its_stream_frees_it(
    path: str, server: ServerThread, engine: WatchedEngine
) -> None:
    with post_and_stay(server.address, path, {**BODIES[path], "stream": True}) as connection:
        ids = engine.wait_for_requests()
        engine.say(ids[0], "Once")
        read_until(connection, b"Once")
    assert engine.wait_for_aborts() == ids


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_while_queued_frees_its_place(
    path: str, *, stream: bool, server: ServerThread, engine: WatchedEngine
) -> None:
    with post_and_stay(server.address, path, {**BODIES[path], "stream": stream, "n": 2}):
        ids = engine.wait_for_requests(2)
    assert sorted(engine.wait_for_aborts(2)) == sorted(ids)
    assert health(server) == 200


@pytest.mark.parametrize("path", BODIES)
def test_a_client_that_leaves_before_its_body_ends_queues_nothing(
    path: str, server: ServerThread, engine: WatchedEngine
) -> None:
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{{"
        connection.sendall(head.encode())
    assert health(server) == 200
    assert not engine.requests


def test_stopping_ends_open_streams_with_an_error_event(
    server: ServerThread, engine: WatchedEngine
) -> None:
    with post_and_stay(server.address, CHAT, {**HELLO, "stream": True}) as connection:
        ids = engine.wait_for_requests()
        engine.say(ids[0], "Once")
        read_until(connection, b"Once")
        server.stop()
        rest = read_to_end(connection)
    assert b"server_stopping" in rest
    assert b"[DONE]" not in rest
    assert engine.aborted == ids


def test_stopping_answers_whole_requests_with_503(
    server: ServerThread, engine: WatchedEngine
) -> None:
    with post_and_stay(server.address, CHAT, HELLO) as connection:
        ids = engine.wait_for_requests()
        server.stop()
        answer = read_to_end(connection)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"server_stopping" in answer
    assert engine.aborted == ids


def test_stopping_does_not_wait_for_idle_or_slow_clients(server: ServerThread) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    with (
        socket.create_connection(server.address, timeout=TIMEOUT_S) as slow_head,
        socket.create_connection(server.address, timeout=TIMEOUT_S) as slow_body,
        httpx.Client(trust_env=False) as idle,
    ):
        slow_head.sendall(head)
        slow_body.sendall(head + b"Content-Length: 50\r\nExpect: 100-continue\r\n\r\n")
        read_until(slow_body, b"100 Continue\r\n\r\n")
        assert idle.get(f"{server.url}/health").status_code == 200
        server.stop()
        assert read_to_end(slow_body).startswith(b"HTTP/1.1 503")


def test_the_headers_of_a_queued_stream_do_not_wait_for_its_first_token(
    server: ServerThread, engine: WatchedEngine
) -> None:
    with post_and_stay(server.address, CHAT, {**HELLO, "stream": True}) as connection:
        ids = engine.wait_for_requests()
        head = read_until(connection, b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        assert b"text/event-stream" in head
        engine.finish(ids[0])
        read_until(connection, b"[DONE]")


def test_a_declared_body_over_the_limit_is_refused_before_it_is_sent(server: ServerThread) -> None:
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as connection:
        connection.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 99999999999\r\n\r\n"
        )
        assert read_until(connection, b"request_too_large").startswith(b"HTTP/1.1 413")
