"""Requests in flight by name, and what the engine is told when one is steered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from engine.client import EngineClient
from engine.runs import ParkNow, Pin, ResumeNext
from fakes.builders import make_request
from fakes.chat_rig import ChatRig, open_chats, until
from fakes.runs import make_run
from studio.models.chat import MessageStatus, reply_request_id
from studio.models.request_log import RequestLog, RequestRow
from studio.services.run_service import RunService, Steer


def service_of(rig: ChatRig) -> tuple[RunService, EngineClient]:
    client = EngineClient(rig.engine, asyncio.get_running_loop())
    return RunService(client, rig.chats), client


def test_requests_are_called_by_their_chats_and_programs_by_a_short_id(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_chats(tmp_path / "h.db") as rig:
            runs, client = service_of(rig)
            chat, _, request_id = await rig.ask("Lisbon")
            rows = (
                make_run(request_id),
                make_run("chatcmpl-3f2a1b9c77"),
                make_run("x"),
                make_run("summary-1"),
            )
            assert runs.names(rows) == {
                request_id: "Lisbon",
                "chatcmpl-3f2a1b9c77": "API request 3f2a1b",
                "x": "API request",
                "summary-1": "Summary",
            }
            assert runs.chat_of(request_id) is chat
            hidden = await rig.chats.new_chat(is_temporary=True)
            _, reply, _ = await rig.ask("Berlin", hidden)
            assert runs.name(reply_request_id(reply)) == "Berlin"
            assert runs.chat_of("chatcmpl-3f2a1b9c77") is None
            await rig.chats.shelf.delete([chat])
            assert runs.name(request_id) == "Lisbon", "also once it is deleted"
            client.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("steer", "command"),
    [
        (Steer.GO_FIRST, ResumeNext),
        (Steer.PARK, ParkNow),
        (Steer.PIN, Pin),
        (Steer.UNPIN, lambda request_id: Pin(request_id=request_id, is_pinned=False)),
    ],
)
def test_steering_is_a_command_about_the_chats_running_reply(
    tmp_path: Path, steer: Steer, command: type
) -> None:
    async def run() -> None:
        async with open_chats(tmp_path / "h.db") as rig:
            runs, client = service_of(rig)
            chat = await rig.chats.new_chat()
            runs.steer_chat(chat, steer)
            assert rig.engine.commands == []
            _, _, request_id = await rig.ask("Hello?", chat)
            runs.steer_chat(chat, steer)
            assert rig.engine.commands == [command(request_id=request_id)]
            client.close()

    asyncio.run(run())


def test_stop_ends_a_chats_reply_and_a_programs_request_alike(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_chats(tmp_path / "h.db") as rig:
            runs, client = service_of(rig)
            _, reply, request_id = await rig.ask("Hello?")
            rig.engine.submit(make_request(request_id="chatcmpl-1"))
            runs.steer("chatcmpl-1", Steer.STOP)
            assert rig.engine.aborted == ["chatcmpl-1"]
            runs.steer(request_id, Steer.STOP)
            assert reply.status is MessageStatus.STOPPED
            await until(lambda: request_id in rig.engine.aborted)
            client.close()

    asyncio.run(run())


def test_a_parked_reply_is_alive_however_long_it_takes(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_chats(tmp_path / "h.db") as rig:
            chat, reply, request_id = await rig.ask("Hello?")
            rig.engine.start(request_id)
            rig.engine.park(request_id)
            await until(lambda: reply.status is MessageStatus.PARKED)
            assert chat.request_id == request_id
            assert not await rig.chats.send(chat, "Are you there?")
            rig.engine.restore(request_id, parked_s=7200.0)
            rig.engine.say(request_id, "Yes.")
            rig.engine.finish(request_id)
            await until(lambda: reply.status is MessageStatus.DONE)
            assert reply.text == "Yes."
            assert rig.notice_codes == []

    asyncio.run(run())


def test_a_programs_request_is_called_by_its_key(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_chats(tmp_path / "h.db") as rig:
            client, log = EngineClient(rig.engine, asyncio.get_running_loop()), RequestLog()
            log.put(
                RequestRow(
                    row_id=log.new_id(),
                    started_s=0.0,
                    method="POST",
                    path="/",
                    client="editor",
                    key="editor",
                    run_ids=("chatcmpl-3f2a1b9c77-0",),
                )
            )
            unnamed = replace(log.rows[0], row_id=log.new_id(), client="Zed", key="")
            log.put(replace(unnamed, program="Zed", run_ids=("chatcmpl-55aa0011",)))
            runs = RunService(client, rig.chats, log)
            rows = [make_run(f"chatcmpl-{one}") for one in ("3f2a1b9c77-0", "55aa0011", "000000")]
            assert list(runs.names(rows).values()) == [
                "editor 3f2a1b",
                "Zed 55aa00",
                "API request 000000",
            ]
            assert runs.name("chatcmpl-3f2a1b9c77-0") == "editor 3f2a1b"
            client.close()

    asyncio.run(run())
