"""Raw clients on real sockets: what they may send, and in what pieces."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from fakes.http_driver import CHAT, HELLO, WatchedEngine, read_to_end, read_until
from fakes.raw_client import ASK, BODY, code_in, connect, exchange, head_of, served
from studio.server.connection import MAX_HEAD_BYTES
from studio.server.thread import ServerThread


@pytest.fixture
def engine() -> WatchedEngine:
    return WatchedEngine(auto=False)


@pytest.fixture
def server(engine: WatchedEngine) -> Iterator[ServerThread]:
    with served(engine) as server:
        yield server


def test_two_requests_at_once_are_answered_in_their_order(
    server: ServerThread, engine: WatchedEngine
) -> None:
    with connect(server) as eager:
        eager.sendall(head_of(CHAT, f"Content-Length: {len(BODY)}") + BODY + ASK)
        (request_id,) = engine.wait_for_requests()
        engine.say(request_id, "Once")
        engine.finish(request_id)
        answers = read_until(eager, b'"object":"list"')
    assert answers.index(b"Once") < answers.index(b'"object":"list"')


def test_a_client_that_leaves_while_its_next_request_waits_ends_the_first(
    server: ServerThread, engine: WatchedEngine
) -> None:
    with connect(server) as eager:
        eager.sendall(head_of(CHAT, f"Content-Length: {len(BODY)}") + BODY + ASK)
        ids = engine.wait_for_requests()
        eager.sendall(ASK)
    assert engine.wait_for_aborts() == ids


@pytest.mark.parametrize("host", ["Host: localhost", "X-None: 1"])
@pytest.mark.parametrize("stream", [True, False])
def test_http_1_0_gets_an_unframed_answer_and_the_end(host: str, *, stream: bool) -> None:
    with served(WatchedEngine()) as server:
        body = json.dumps({**HELLO, "stream": stream}).encode()
        head = f"POST {CHAT} HTTP/1.0\r\n{host}\r\nContent-Length: {len(body)}\r\n\r\n"
        answer = exchange(server, head.encode() + body)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"transfer-encoding" not in answer.lower()
    assert b"Hello" in answer
    assert answer.endswith(b"data: [DONE]\n\n" if stream else b"}")


def test_a_body_in_chunks_is_read(server: ServerThread, engine: WatchedEngine) -> None:
    with connect(server) as connection:
        connection.sendall(head_of(CHAT, "Transfer-Encoding: chunked"))
        for byte in BODY:
            connection.sendall(b"1\r\n%c\r\n" % byte)
        connection.sendall(b"0\r\n\r\n")
        (request_id,) = engine.wait_for_requests()
        assert engine.requests[request_id].prompt.messages[0].content == "Say hello."


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "bad_request"),
        (b"hello\r\n\r\n", 400, "bad_request"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "bad_request"),
        (head_of(CHAT, "Content-Length: -5") + b"{}", 400, "bad_request"),
        (head_of(CHAT, "Content-Length: 5", "Content-Length: 6") + b"{}", 400, "bad_request"),
        (head_of(CHAT, "Transfer-Encoding: chunked") + b"zz\r\n", 400, "bad_request"),
        (head_of(CHAT, "Transfer-Encoding: gzip, chunked"), 501, "bad_request"),
        (head_of(CHAT, "X-Long: " + "a" * MAX_HEAD_BYTES)[:-2], 431, "request_head_too_large"),
        (b"GET /" + b"a" * 2 * MAX_HEAD_BYTES, 431, "request_head_too_large"),
    ],
)
def test_what_is_no_request_is_an_error_in_json_and_the_end(
    server: ServerThread, engine: WatchedEngine, *, sent: bytes, status: int, code: str
) -> None:
    answer = exchange(server, sent)
    assert answer.startswith(b"HTTP/1.1 %d" % status), answer
    assert code_in(answer) == code
    assert not engine.requests


def test_rubbish_after_an_answer_has_begun_ends_the_connection(
    server: ServerThread, engine: WatchedEngine
) -> None:
    with connect(server) as connection:
        connection.sendall(
            head_of("/v1/nothing", "Transfer-Encoding: chunked") + b"1\r\na\r\nrubbish\r\n"
        )
        answer = read_to_end(connection)
    assert b"HTTP/1.1 4" in answer
    assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200


@pytest.mark.parametrize("protocol", ["h2c", "websocket"])
def test_an_offer_to_speak_another_protocol_is_passed_over(
    server: ServerThread, protocol: str
) -> None:
    offer = f"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: {protocol}\r\n\r\n"
    assert exchange(server, offer.encode()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "GZIP, identity"])
def test_a_compressed_body_is_refused_by_name(
    server: ServerThread, engine: WatchedEngine, encoding: str
) -> None:
    answer = httpx.post(
        server.url + CHAT, content=b"\x1f\x8b", headers={"content-encoding": encoding}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_encoding")
    assert encoding in answer.json()["error"]["message"]
    assert not engine.requests


def test_a_byte_order_mark_before_the_body_is_passed_over() -> None:
    with served(WatchedEngine()) as server:
        assert httpx.post(server.url + CHAT, content=b"\xef\xbb\xbf" + BODY).status_code == 200


def test_a_body_that_is_not_utf8_is_refused_with_its_place(server: ServerThread) -> None:
    body = '{"messages": [{"role": "user", "content": "h\xf6"}]}'.encode("latin-1")
    error = httpx.post(server.url + CHAT, content=body).json()["error"]
    assert "line 1 column" in error["message"]
    assert "unicode" in error["message"]


def test_nothing_that_is_sent_makes_the_server_fail() -> None:
    """Mutilated requests in arbitrary pieces: the next client is served, and no warning is logged."""
    dice = random.Random(5)
    chunked = head_of(CHAT, "Transfer-Encoding: chunked") + b"5\r\n{    \r\n1\r\n}\r\n0\r\n\r\n"
    whole = head_of(CHAT, f"Content-Length: {len(BODY)}", "Expect: 100-continue") + BODY
    connect_ = b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    seeds = (ASK, chunked, whole, ASK + whole + ASK, whole + whole, connect_)
    with served(WatchedEngine()) as server:
        for _ in range(200):
            sent = bytearray(dice.choice(seeds))
            for _ in range(dice.randint(0, 3)):
                place = dice.randrange(len(sent))
                sent[place : place + dice.randint(0, 2)] = dice.randbytes(dice.randint(0, 2))
            with connect(server) as connection, suppress(OSError):
                cut = dice.randrange(len(sent))
                for part in (sent[:cut], sent[cut:]):
                    connection.sendall(part)
                if dice.random() < 0.5:
                    connection.shutdown(socket.SHUT_WR)
                    read_to_end(connection)
        assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200


def test_a_path_cannot_forge_a_line_of_the_log(
    engine: WatchedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="studio.server"), served(engine) as server:
        exchange(
            server, b"GET /a%0d%0aERROR HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
    messages = [record.getMessage() for record in caplog.records]
    assert not any("\n" in message for message in messages)
    assert any("/a%0d%0aERROR" in message for message in messages)
