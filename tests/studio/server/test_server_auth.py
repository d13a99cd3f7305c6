"""Foreign pages cannot use the server through the user's browser; pages of this machine can."""

from __future__ import annotations

import pytest

from fakes.fake_engine import FakeEngine
from fakes.http_driver import CHAT, HELLO, assert_error, on_a_loop, open_client
from studio.models.server_settings import ServerSettings, is_loopback_host

KEY = {"authorization": "Bearer k"}
LOOPBACK = ServerSettings()
PUBLIC = ServerSettings(host="0.0.0.0", api_key="k")
NAMED = ServerSettings(host="::1", api_key="k")


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost:8484",
        "localhost.",
        "127.0.0.1:1",
        "127.9.9.9",
        "[::1]",
        "[::1]:80",
        "host.docker.internal:8484",
        "Gateway.Docker.Internal",
        "host.containers.internal:80",
        "layby.localhost",
        "a.b.localhost.:8484",
    ],
)
@on_a_loop
async def test_hosts_of_this_machine_are_known(host: str) -> None:
    async with open_client(FakeEngine()) as client:
        assert (await client.get("/v1/models", headers={"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8484",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "evil.docker.internal",
        "host.docker.internal.evil.example",
        "evillocalhost",
        "localhost.example",
        "",
        "[::2]",
    ],
)
@on_a_loop
async def test_a_rebound_name_is_refused(host: str) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        answer = await client.post(CHAT, json=HELLO, headers={"host": host})
    assert_error(answer, 403, "host_not_allowed")
    assert not engine.requests


@on_a_loop
async def test_with_a_key_and_a_public_address_any_host_is_known() -> None:
    headers = {"host": "my-desk.lan:8484", **KEY}
    async with open_client(FakeEngine(), settings=PUBLIC) as client:
        assert (await client.get("/v1/models", headers=headers)).status_code == 200
    async with open_client(FakeEngine(), settings=NAMED) as client:
        assert_error(await client.get("/v1/models", headers=headers), 403, "host_not_allowed")


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "http://127.0.0.1",
        "https://localhost",
        "http://[::1]:80",
        "http://app.localhost:3000",
    ],
)
@on_a_loop
async def test_pages_of_this_machine_get_cors_headers(origin: str) -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.post(CHAT, json=HELLO, headers={"origin": origin})
        wrong = await client.get("/nowhere", headers={"origin": origin})
    assert answer.headers["access-control-allow-origin"] == origin
    assert "x-request-id" in answer.headers["access-control-expose-headers"].lower()
    assert wrong.headers["access-control-allow-origin"] == origin


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost.evil.example",
        "http://evillocalhost",
        "https://evil.example:8484",
        "null",
    ],
)
@on_a_loop
async def test_foreign_pages_are_refused(origin: str) -> None:
    engine = FakeEngine()
    async with open_client(engine) as client:
        answer = await client.post(CHAT, json=HELLO, headers={"origin": origin})
        preflight = await client.options(
            CHAT, headers={"origin": origin, "access-control-request-method": "POST"}
        )
    assert_error(answer, 403, "origin_not_allowed")
    assert "access-control-allow-origin" not in answer.headers
    assert origin in assert_error(preflight, 400, "origin_not_allowed")
    assert not [name for name in preflight.headers if name.startswith("access-control-")]
    assert not engine.requests


@on_a_loop
async def test_programs_that_send_an_origin_of_their_own_kind_are_served() -> None:
    async with open_client(FakeEngine()) as client:
        answer = await client.get("/v1/models", headers={"origin": "app://obsidian.md"})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("settings", [LOOPBACK, PUBLIC])
@on_a_loop
async def test_a_preflight_is_answered_without_a_key(settings: ServerSettings) -> None:
    headers = {
        "origin": "http://localhost:3000",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
    }
    async with open_client(FakeEngine(), settings=settings) as client:
        answer = await client.options(CHAT, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
    assert "authorization" in answer.headers["access-control-allow-headers"]


@pytest.mark.parametrize("asks", ["true", "false", None])
@on_a_loop
async def test_a_page_that_is_let_in_may_reach_into_this_network(asks: str | None) -> None:
    headers = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}
    network = {} if asks is None else {"access-control-request-private-network": asks}
    async with open_client(FakeEngine()) as client:
        answer = await client.options(CHAT, headers={**headers, **network})
        foreign = await client.options(
            CHAT, headers={**headers, **network, "origin": "http://evil.example"}
        )
    assert answer.status_code == 200
    told = answer.headers.get("access-control-allow-private-network")
    assert told == ("true" if asks == "true" else None)
    assert_error(foreign, 400, "origin_not_allowed")
    assert "access-control-allow-private-network" not in foreign.headers


@pytest.mark.parametrize(
    ("bearer", "plain", "status"),
    [("k", "k", 200), ("k", "old", 200), ("old", "k", 200), ("old", "other", 401), ("", "k", 200)],
)
@on_a_loop
async def test_a_right_key_is_enough_whatever_stands_beside_it(
    bearer: str, plain: str, status: int
) -> None:
    headers = {"authorization": f"Bearer {bearer}".strip(), "x-api-key": plain}
    async with open_client(FakeEngine(), settings=PUBLIC) as client:
        assert (await client.get("/v1/models", headers=headers)).status_code == status


@on_a_loop
async def test_an_error_of_the_key_still_has_cors_headers() -> None:
    async with open_client(FakeEngine(), settings=PUBLIC) as client:
        answer = await client.get("/v1/models", headers={"origin": "http://localhost:3000"})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"


def test_loopback_hosts() -> None:
    assert all(map(is_loopback_host, ["localhost", "127.0.0.1", "127.1.2.3", "::1"]))
    assert not any(map(is_loopback_host, ["0.0.0.0", "::", "192.168.1.1", "example.org", ""]))


def test_settings_hide_the_key_and_bound_the_port() -> None:
    assert "secret" not in repr(ServerSettings(api_key="secret"))
    with pytest.raises(ValueError, match="port is 70000, allowed is 0"):
        ServerSettings(port=70000)
