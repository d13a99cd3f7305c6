"""A screen reader hears of a park, a return and an end once each, of chats on screen and others, never of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QAccessible

from engine.errors import DeviceFailure
from fakes.chat_rig import ChatRig, open_chats, until
from fakes.fake_window import open_stage
from studio.models.chat import MessageStatus
from studio.models.errors import StoreFull
from studio.services.notice_service import NoticeService
from studio.views.announcer import QUIET_S, Announcer

Play = Callable[[Coroutine[Any, Any, None]], None]


class Ear:
    def __init__(self, rig: ChatRig) -> None:
        self.rig, self.said, self.now_s = rig, list[str](), 0.0
        self.notices = NoticeService()
        self.announcer = Announcer(
            rig.chats, self.said.append, self.notices.notices, clock=lambda: self.now_s
        )

    async def ask(self, title: str) -> tuple[str, Callable[[MessageStatus], Awaitable[None]]]:
        _, reply, request_id = await self.rig.ask(title)
        return request_id, lambda status: until(lambda: reply.status is status)


def hear(folder: Path, story: Callable[[Ear], Coroutine[None, None, None]]) -> None:
    async def run() -> None:
        async with open_chats(folder / "history.sqlite") as rig:
            ear = Ear(rig)
            await story(ear)
            ear.announcer.close()

    asyncio.run(run())


def test_each_is_told_once(tmp_path: Path) -> None:
    async def story(ear: Ear) -> None:
        engine = ear.rig.engine
        request_id, comes = await ear.ask("Lisbon")
        engine.start(request_id)
        for _ in range(20):
            engine.say(request_id, "word ")
        await comes(MessageStatus.WRITING)
        engine.park(request_id)
        await comes(MessageStatus.PARKED)
        engine.restore(request_id)
        await comes(MessageStatus.WRITING)
        engine.finish(request_id)
        await comes(MessageStatus.DONE)
        assert ear.said == [
            "Lisbon: Parked to make room for other requests",
            "Lisbon goes on",
            "Lisbon has finished",
        ]

    hear(tmp_path, story)


def test_who_takes_turns_is_not_told_at_every_turn(tmp_path: Path) -> None:
    async def story(ear: Ear) -> None:
        engine = ear.rig.engine
        request_id, comes = await ear.ask("Lisbon")
        engine.start(request_id)
        engine.say(request_id, "word ")
        for _ in range(5):
            engine.park(request_id)
            await comes(MessageStatus.PARKED)
            engine.restore(request_id)
            await comes(MessageStatus.WRITING)
        assert len(ear.said) == 2
        ear.now_s += QUIET_S
        engine.park(request_id)
        await comes(MessageStatus.PARKED)
        assert len(ear.said) == 3
        engine.fail(request_id, DeviceFailure("no"))
        await comes(MessageStatus.FAILED)
        assert ear.said[-1] == "Lisbon has failed"

    hear(tmp_path, story)


def test_what_a_person_stops_is_not_told(tmp_path: Path) -> None:
    async def story(ear: Ear) -> None:
        _, comes = await ear.ask("Lisbon")
        ear.rig.chats.stop(ear.rig.chats.chats[0])
        await comes(MessageStatus.STOPPED)
        assert ear.said == []

    hear(tmp_path, story)


def test_a_notice_is_told_once_and_again_when_it_comes_again(tmp_path: Path) -> None:
    async def story(ear: Ear) -> None:
        full, other = StoreFull("no room"), DeviceFailure("no")
        ear.notices.report(full)
        ear.notices.report(full)
        ear.notices.report(other)
        assert len(ear.said) == 2
        assert ear.said[0].startswith("The disk is full")
        ear.notices.resolve(StoreFull.code)
        assert len(ear.said) == 2
        ear.notices.report(full)
        assert len(ear.said) == 3

    hear(tmp_path, story)


def test_the_window_tells_it_to_the_system(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            hidden = stage.chats.chats[1]
            request_id = await stage.ask(hidden, "Hello?")
            monkeypatch.setattr(
                QAccessible, "updateAccessibility", lambda event: told.append(event.message())
            )
            stage.engine.start(request_id)
            stage.engine.finish(request_id)
            await until(lambda: told)

    play(story())
    assert told == ["A has finished"]
