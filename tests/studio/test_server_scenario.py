"""S17 with real sockets: start, a taken port, another one, an address for others, stopping with requests under way."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from fakes.chat_rig import until
from fakes.fake_engine import FakeEngine
from studio.app import open_services
from studio.models.errors import PortTaken
from studio.models.request_log import RequestState
from studio.models.server_keys import KeyPlan
from studio.paths import find_paths
from studio.services.server_service import ServerState
from studio.services.settings_service import SettingsService
from studio.views.ports import WindowServices

ASK = {"messages": [{"role": "user", "content": "Hello"}]}


@asynccontextmanager
async def open_world(tmp_path: Path) -> AsyncIterator[tuple[WindowServices, FakeEngine]]:
    settings = SettingsService(tmp_path / "settings.json", environment={}, flags={})
    engine = FakeEngine(auto=False)
    async with open_services(settings, find_paths(), engine=engine) as services:
        yield services, engine


def test_the_server_from_its_first_start_to_its_last_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    async def story() -> None:
        async with (
            open_world(tmp_path) as (services, engine),
            httpx.AsyncClient(trust_env=False, timeout=60) as client,
        ):
            server, settings = services.server, services.settings
            with socket.socket() as other:
                other.bind(("127.0.0.1", 0))
                other.listen()
                settings.change("server.port", other.getsockname()[1])
                await server.start()
                problem = server.problem
                assert isinstance(problem, PortTaken)
                assert server.state is ServerState.OFF
                await server.start_at(problem.free_port)
            assert server.state is ServerState.ON
            address = server.address
            assert address is not None
            await server.stop()

            settings.change("server.host", "0.0.0.0")
            await server.start()
            assert server.address is None
            assert "an API key is needed" in str(server.problem)
            _, secret = server.keys.create(KeyPlan(name="agent", max_requests=2))
            await server.start()
            assert server.state is ServerState.ON
            url = f"http://127.0.0.1:{settings.settings.server.port}/v1/chat/completions"
            assert (await client.post(url, json=ASK)).status_code == 401

            headers = {"authorization": f"Bearer {secret}"}
            asked = [
                asyncio.create_task(client.post(url, json=ASK, headers=headers)) for _ in range(2)
            ]
            await until(lambda: len(engine.alive) == 2)
            assert (await client.post(url, json=ASK, headers=headers)).status_code == 429
            assert len(server.requests_under_way()) == 2
            finishing = asyncio.create_task(server.finish())
            await until(lambda: server.state is ServerState.FINISHING)
            for request_id in list(engine.alive):
                engine.start(request_id)
                engine.say(request_id, "Hi")
                engine.finish(request_id)
            assert [(await answer).status_code for answer in asked] == [200, 200]
            await finishing
            assert server.state is ServerState.OFF
            states = [row.state for row in server.log.rows]
            assert states.count(RequestState.DONE) == 2
            assert all(row.prompt == "" for row in server.log.rows)
            assert {row.client for row in server.log.rows} == {"python-httpx", "agent"}

    asyncio.run(story())
