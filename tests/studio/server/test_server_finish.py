"""A server that finishes answers what it has begun and nothing more; its ports and keys are refused in words."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fakes.fake_engine import FakeEngine
from fakes.http_driver import CHAT, HELLO, WatchedEngine, post_and_stay, read_to_end
from studio.models.errors import PortTaken, ServerStartError
from studio.models.server_keys import KeyPlan
from studio.models.server_settings import ServerSettings
from studio.server.parts import ServerParts
from studio.server.thread import ServerThread
from studio.services.key_store import KeyStore

TIMEOUT_S = 60.0


@pytest.fixture
def engine() -> WatchedEngine:
    return WatchedEngine(auto=False)


@pytest.fixture
def server(engine: WatchedEngine) -> Iterator[ServerThread]:
    server = ServerThread(engine, ServerSettings(port=0))
    server.start()
    yield server
    server.stop()


def wait_until_refused(server: ServerThread) -> None:
    """Ask, with a body that is none, until the answer is that the server stops: so nothing new reaches the engine."""
    while True:
        answer = httpx.post(f"{server.url}{CHAT}", content=b"{", trust_env=False, timeout=TIMEOUT_S)
        if answer.status_code == 503:
            assert answer.json()["error"]["code"] == "server_stopping"
            return
        assert answer.status_code == 400


def test_what_has_begun_is_answered_and_nothing_new_is_taken(
    server: ServerThread, engine: WatchedEngine
) -> None:
    with post_and_stay(server.address, CHAT, HELLO) as connection:
        (request_id,) = engine.wait_for_requests()
        finishing = threading.Thread(target=server.finish, name="layby-test-finish")
        finishing.start()
        wait_until_refused(server)
        assert finishing.is_alive()
        for alive in list(engine.alive):
            engine.start(alive)
            engine.say(alive, "done")
            engine.finish(alive)
        finishing.join(TIMEOUT_S)
        assert not finishing.is_alive()
        server.stop()
        assert b"done" in read_to_end(connection)
    assert request_id in engine.requests


def test_stopping_ends_the_wait_for_the_last(server: ServerThread, engine: WatchedEngine) -> None:
    with post_and_stay(server.address, CHAT, HELLO):
        engine.wait_for_requests()
        finishing = threading.Thread(target=server.finish, name="layby-test-finish")
        finishing.start()
        server.stop()
        finishing.join(TIMEOUT_S)
        assert not finishing.is_alive()


def test_a_taken_port_comes_with_the_next_free_one(server: ServerThread) -> None:
    port = server.address[1]
    with pytest.raises(PortTaken) as caught:
        ServerThread(FakeEngine(), ServerSettings(port=port)).start()
    assert caught.value.port == port
    assert caught.value.free_port != port
    if caught.value.free_port:
        other = ServerThread(FakeEngine(), ServerSettings(port=caught.value.free_port))
        try:
            other.start()
        except ServerStartError:
            pytest.skip("somebody else has taken it meanwhile")
        other.stop()


def test_a_key_of_the_list_lets_the_server_listen_for_others(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path / "keys.json")
    public = ServerSettings(host="0.0.0.0", port=0)
    server = ServerThread(FakeEngine(), public, parts=ServerParts(keys=keys))
    with pytest.raises(ServerStartError, match="an API key is needed"):
        server.start()
    _, secret = keys.create(KeyPlan(name="phone"))
    server.start()
    try:
        url = f"http://127.0.0.1:{server.address[1]}/v1/models"
        assert httpx.get(url, trust_env=False).status_code == 401
        headers = {"x-api-key": secret}
        assert httpx.get(url, headers=headers, trust_env=False).status_code == 200
    finally:
        server.stop()
