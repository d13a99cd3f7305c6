"""Services on the real engine and a tiny model: loading again while replies run, by each of the three choices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.api import EngineState, LoadOptions
from engine.factory import create_engine
from fakes.at_once import ask, start_at_once
from fakes.chat_rig import until
from fakes.gate import Gate
from fakes.tiny_files import write_tiny_gguf
from studio.app import open_services
from studio.models.chat import Message, MessageStatus
from studio.models.setting_field import AppliesAt
from studio.models.settings import Settings, all_settings
from studio.paths import Paths
from studio.services.reload_service import LOADED_WITH, ReloadChoice, Target, changed_keys
from studio.services.run_service import Steer
from studio.services.settings_service import SettingsService
from studio.views.ports import WindowServices

REPLY_TOKENS = 450
SEATS = 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("other"), seed=5)


@dataclass
class Stage:
    services: WindowServices
    gate: Gate

    async def load(self, target: Target | None, choice: ReloadChoice) -> bool:
        """Load by a choice; the engine goes on once it has been told."""
        assert target is not None
        loading = asyncio.ensure_future(self.services.reloads.load(target, choice))
        models = self.services.models
        await until(lambda: models.state is EngineState.LOADING or loading.done())
        self.gate.open()
        return await loading

    async def start(self, *titles: str) -> list[Message]:
        """Ask all at one moment; the gate is shut when those who have a seat have written a little."""
        replies = await start_at_once(self.services, self.gate, titles, tokens=REPLY_TOKENS)
        self.gate.shut_at(min(len(titles), SEATS), 20)
        self.gate.open()
        await until(lambda: self.gate.is_shut)
        return replies

    async def three_running_one_queued(self) -> list[Message]:
        return await self.start("Chat 0", "Chat 1", "Chat 2", "Chat 3")


def play(folder: Path, model: Path, story: Callable[[Stage], Awaitable[None]]) -> None:
    async def run() -> None:
        paths = Paths(
            data=folder / "data", cache=folder / "cache", config=folder, logs=folder / "logs"
        )
        settings = SettingsService(folder / "settings.json", environment={}, flags={})
        settings.change("engine.ctx_size", 2048)
        settings.change("engine.threads", 1)
        settings.change("engine.parallel", SEATS)
        engine = create_engine()
        async with open_services(settings, paths, engine=engine) as services:
            assert await services.models.load(str(model))
            gate = Gate(engine)
            try:
                await story(Stage(services, gate))
            finally:
                gate.close()

    asyncio.run(run())


def test_parked_replies_go_on_after_the_load_to_the_bytes_of_an_undisturbed_run(
    tmp_path: Path, model: Path
) -> None:
    alone: list[str] = []

    async def undisturbed(stage: Stage) -> None:
        for n in range(4):
            reply = await ask(stage.services, f"Chat {n}", tokens=REPLY_TOKENS)
            await until(lambda reply=reply: not reply.status.is_alive)
            alone.append(reply.text)

    async def story(stage: Stage) -> None:
        services, reloads = stage.services, stage.services.reloads
        replies = await stage.three_running_one_queued()
        names = [one.name for one in reloads.affected()]
        assert names == ["Chat 3", "Chat 2", "Chat 1", "Chat 0"]
        services.settings.change("engine.ctx_size", 4096)
        services.settings.change("engine.parallel", 2)
        assert reloads.pending() == ("engine.ctx_size", "engine.parallel")
        assert await stage.load(reloads.again(), ReloadChoice.PARK)
        assert reloads.pending() == ()
        await until(lambda: not any(one.status.is_alive for one in replies))
        assert [one.status for one in replies] == [MessageStatus.LENGTH] * 4
        assert [one.text for one in replies] == alone
        assert all(one.stats.parked_s > 0 for one in replies[:3])

    play(tmp_path / "alone", model, undisturbed)
    play(tmp_path / "home", model, story)


def test_one_parked_by_hand_stays_parked_over_the_load(tmp_path: Path, model: Path) -> None:
    async def story(stage: Stage) -> None:
        services = stage.services
        (reply,) = await stage.start("Held")
        services.runs.steer_chat(services.chats.chats[0], Steer.PARK)
        stage.gate.open()
        await until(lambda: reply.status is MessageStatus.PARKED)
        assert services.reloads.affected()[0].is_parked
        assert await stage.load(services.reloads.again(), ReloadChoice.PARK)
        await until(lambda: services.runs.snapshot().parked == 1)
        assert reply.status is MessageStatus.PARKED
        services.runs.steer_chat(services.chats.chats[0], Steer.GO_FIRST)
        await until(lambda: reply.status is MessageStatus.LENGTH)

    play(tmp_path, model, story)


def test_another_model_keeps_the_text_so_far(tmp_path: Path, model: Path, other: Path) -> None:
    async def story(stage: Stage) -> None:
        replies = await stage.three_running_one_queued()
        target = Target(name=str(other))
        assert not stage.services.reloads.is_same_model(target)
        assert await stage.load(target, ReloadChoice.PARK)
        running = replies[:3]
        await until(lambda: all(one.status is MessageStatus.INTERRUPTED for one in running))
        assert all(one.text for one in running)

    play(tmp_path, model, story)


def test_stopping_keeps_the_text_and_loads(tmp_path: Path, model: Path) -> None:
    async def story(stage: Stage) -> None:
        replies = await stage.three_running_one_queued()
        assert await stage.load(stage.services.reloads.again(), ReloadChoice.STOP)
        assert {one.status for one in replies} == {MessageStatus.STOPPED}
        assert all(one.text for one in replies[:3])
        assert stage.services.reloads.affected() == ()

    play(tmp_path, model, story)


def test_waiting_loads_when_the_last_has_ended(tmp_path: Path, model: Path) -> None:
    async def story(stage: Stage) -> None:
        reloads = stage.services.reloads
        replies = await stage.three_running_one_queued()
        target = reloads.again()
        assert target is not None
        loading = asyncio.ensure_future(reloads.load(target, ReloadChoice.WAIT))
        await until(lambda: reloads.waits_for is target)
        assert stage.services.models.state is EngineState.READY
        stage.gate.open()
        assert await loading
        assert {one.status for one in replies} == {MessageStatus.LENGTH}
        assert reloads.waits_for is None

    play(tmp_path, model, story)


def test_a_wait_may_be_given_up_and_replaced(tmp_path: Path, model: Path) -> None:
    async def story(stage: Stage) -> None:
        reloads = stage.services.reloads
        replies = await stage.three_running_one_queued()
        target = reloads.again()
        assert target is not None
        first = asyncio.ensure_future(reloads.load(target, ReloadChoice.WAIT))
        await until(lambda: reloads.waits_for is target)
        reloads.cancel()
        assert not await first
        second = asyncio.ensure_future(reloads.load(target, ReloadChoice.WAIT))
        await until(lambda: reloads.waits_for is target)
        assert await reloads.load(Target(name=None), ReloadChoice.STOP)
        stage.gate.open()
        assert not await second
        assert {one.status for one in replies} == {MessageStatus.STOPPED}
        await until(lambda: reloads.again() is None)
        assert reloads.pending() == ()

    play(tmp_path, model, story)


def test_every_setting_that_counts_at_the_next_load_is_known() -> None:
    declared = {
        entry.key
        for entry in all_settings()
        if entry.info.applies is AppliesAt.NEXT_LOAD and not entry.info.is_hidden
    }
    assert declared - {"engine.model"} == set(LOADED_WITH)


def test_settings_that_say_what_is_loaded_are_not_told() -> None:
    settings = Settings()
    assert changed_keys(settings.load_options(), settings.load_options()) == ()
    assert changed_keys(settings.load_options(), LoadOptions(preempt_async=False)) == ()
    changed = settings.with_value("engine.threads", 3).with_value("park.ram_mib", 5)
    assert changed_keys(changed.load_options(), settings.load_options()) == ("engine.threads",)
