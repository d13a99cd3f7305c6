"""The server's switch: one server, a taken port with another to offer, finishing, and what needs a new start."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fakes.chat_rig import until
from studio.models.errors import PortTaken, ServerStartError
from studio.models.request_log import RequestLog, RequestRow
from studio.services.key_store import KeyStore
from studio.services.notice_service import NoticeService
from studio.services.server_service import ServerService, ServerState
from studio.services.settings_service import SettingsService


class Server:
    def __init__(self, refusal: ServerStartError | None) -> None:
        self._refusal = refusal
        self.url = "http://127.0.0.1:8484"
        self.ended = threading.Event()
        self.last_request = threading.Event()

    def start(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def finish(self) -> None:
        self.last_request.wait(60)

    def stop(self) -> None:
        self.last_request.set()
        self.ended.set()


class Rig:
    def __init__(self, folder: Path) -> None:
        self.refusal: ServerStartError | None = None
        self.made: list[Server] = []
        self.notices = NoticeService()
        self.settings = SettingsService(folder / "settings.json", environment={}, flags={})
        self.log = RequestLog()
        self.service = ServerService(
            self.make,
            self.notices,
            settings=self.settings,
            keys=KeyStore(folder / "keys.json"),
            log=self.log,
        )

    def make(self) -> Server:
        self.made.append(Server(self.refusal))
        return self.made[-1]

    @property
    def notice_codes(self) -> list[str]:
        return [notice.code for notice in self.notices.notices.notices]


@asynccontextmanager
async def open_rig(folder: Path) -> AsyncIterator[Rig]:
    rig = Rig(folder)
    yield rig
    await rig.service.stop()


def test_it_is_one_server_that_can_be_started_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            assert (rig.service.state, rig.service.address) == (ServerState.OFF, None)
            await asyncio.gather(rig.service.start(), rig.service.start())
            assert (rig.service.state, len(rig.made)) == (ServerState.ON, 1)
            assert rig.service.address == "http://127.0.0.1:8484"
            await rig.service.restart()
            assert len(rig.made) == 2
            await rig.service.stop()
            await rig.service.stop()
            assert (rig.service.state, rig.service.address) == (ServerState.OFF, None)

    asyncio.run(story())


def test_a_taken_port_is_the_problem_until_another_is_taken(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            rig.refusal = PortTaken("port 8484 is taken", port=8484, free_port=8485)
            await rig.service.start()
            assert rig.service.state is ServerState.OFF
            assert rig.service.problem is rig.refusal
            assert rig.notice_codes == ["port_taken"]
            rig.refusal = None
            await rig.service.start_at(8485)
            assert rig.settings.settings.server.port == 8485
            assert (rig.service.state, rig.service.problem) == (ServerState.ON, None)
            assert rig.notice_codes == []

    asyncio.run(story())


def test_finishing_ends_with_the_last_request_or_at_once_when_stopped(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            for is_stopped in (False, True):
                await rig.service.start()
                server = rig.made[-1]
                finishing = asyncio.create_task(rig.service.finish())
                await until(lambda: rig.service.state is ServerState.FINISHING)
                assert not server.ended.is_set()
                if is_stopped:
                    await rig.service.stop()
                else:
                    server.last_request.set()
                await finishing
                assert server.ended.is_set()
                assert rig.service.state is ServerState.OFF

    asyncio.run(story())


def test_only_what_it_listens_by_needs_a_new_start(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            rig.settings.change("server.port", 9000)
            assert not rig.service.needs_restart
            await rig.service.start()
            rig.settings.change("server.loads_models", False)
            assert not rig.service.needs_restart
            rig.settings.change("server.keeps_prompts", True)
            assert rig.service.needs_restart
            await rig.service.restart()
            assert not rig.service.needs_restart

    asyncio.run(story())


def test_requests_under_way_are_those_for_text_that_have_not_ended(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_rig(tmp_path) as rig:
            for runs, ended_s in (((), None), (("a",), None), (("b",), 5.0)):
                rig.log.put(
                    RequestRow(
                        row_id=rig.log.new_id(),
                        started_s=1.0,
                        method="POST",
                        path="/",
                        client="",
                        run_ids=runs,
                        ended_s=ended_s,
                    )
                )
            assert [row.run_ids for row in rig.service.requests_under_way()] == [("a",)]

    asyncio.run(story())
