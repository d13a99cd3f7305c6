"""Services on the real engine and a tiny model: replies outlive a quit, a reload and another model between."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.api import SamplingParams
from fakes.chat_rig import until
from fakes.tiny_files import EOS_ID, write_tiny_gguf
from studio.app import open_services
from studio.models.chat import Message, MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.paths import Paths
from studio.services.run_service import Steer
from studio.services.settings_service import SettingsService
from studio.views.ports import WindowServices

PROMPT = "Tell me a story"
REPLY_TOKENS = 1200
"""So many that nothing here is ever faster than the end of a reply."""
SAID_CHARS = 60
ENDED = (MessageStatus.DONE, MessageStatus.LENGTH)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("model"))


def settings_of(home: Path, model: Path) -> SettingsService:
    flags = {
        "engine.model": str(model),
        "engine.ctx_size": 2048,
        "engine.threads": 1,
        "park.folder": str(home / "parked"),
    }
    return SettingsService(home / "settings.json", environment={}, flags=flags)


def paths_of(home: Path) -> Paths:
    return Paths(data=home / "data", cache=home / "cache", config=home, logs=home / "logs")


async def ask(services: WindowServices) -> Message:
    chat = await services.chats.new_chat()
    sampling = SamplingParams(temperature=0.8, seed=3, logit_bias=((EOS_ID, float("-inf")),))
    chat.settings = ChatSettings(sampling=sampling, max_tokens=REPLY_TOKENS)
    assert await services.chats.send(chat, PROMPT)
    return chat.messages[-1]


async def undisturbed(home: Path, model: Path) -> str:
    async with open_services(settings_of(home, model), paths_of(home)) as services:
        assert await services.models.load(str(model))
        reply = await ask(services)
        await until(lambda: not reply.status.is_alive)
        return reply.text


async def last_reply(services: WindowServices) -> Message:
    chat = await services.chats.open_chat(services.chats.chats[0].chat_id)
    return chat.messages[-1]


def files(home: Path) -> list[Path]:
    return list((home / "parked").glob("*.safetensors"))


@pytest.mark.parametrize("is_parked", [False, True], ids=["running", "parked"])
def test_a_reply_outlives_quitting_and_goes_on_when_the_program_starts(
    tmp_path: Path, model: Path, *, is_parked: bool
) -> None:
    async def run() -> None:
        alone = await undisturbed(tmp_path / "alone", model)
        home = tmp_path / "home"
        async with open_services(settings_of(home, model), paths_of(home)) as services:
            assert await services.models.load(str(model))
            reply = await ask(services)
            await until(lambda: len(reply.text) > SAID_CHARS)
            if is_parked:
                services.runs.steer_chat(services.chats.chats[0], Steer.PARK)
                await until(lambda: reply.status is MessageStatus.PARKED)
        before = reply.text
        assert reply.status is MessageStatus.INTERRUPTED
        assert len(before) < len(alone)
        assert len(files(home)) == 1
        async with open_services(settings_of(home, model), paths_of(home)) as services:
            reply = await last_reply(services)
            assert (reply.text, reply.status) == (before, MessageStatus.INTERRUPTED)
            assert await services.models.load(str(model))
            await until(lambda: reply.status in ENDED)
            assert reply.text == alone
        assert files(home) == []

    asyncio.run(run())


def test_a_reply_goes_on_after_a_reload_and_waits_while_another_model_is_loaded(
    tmp_path: Path, model: Path
) -> None:
    async def run() -> None:
        other = write_tiny_gguf(tmp_path / "other", seed=5)
        alone = await undisturbed(tmp_path / "alone", model)
        home = tmp_path / "home"
        async with open_services(settings_of(home, model), paths_of(home)) as services:
            assert await services.models.load(str(model))
            reply = await ask(services)
            await until(lambda: len(reply.text) > SAID_CHARS)
            assert await services.models.load(str(other))
            await until(lambda: "load the first one to go on" in reply.note)
            assert reply.status is MessageStatus.INTERRUPTED
            assert alone.startswith(reply.text)
            assert len(files(home)) == 1
            assert await services.models.load(str(model))
            await until(lambda: reply.status in ENDED)
            assert reply.text == alone
            assert reply.note == ""

    asyncio.run(run())
