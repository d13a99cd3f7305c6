"""PresetService: settings of a chat reach its next reply; presets are saved, taken, renamed, deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.api import Chat, SamplingParams
from fakes.chat_rig import open_chats, until
from fakes.fake_engine import FakeEngine
from studio.models.chat_settings import ChatSettings
from studio.models.undo import Undo

TERSE = ChatSettings(
    system_prompt="Be terse.",
    sampling=SamplingParams(temperature=0.1, seed=7),
    max_tokens=60,
    stop=("END",),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def test_settings_hold_for_the_next_reply_and_not_for_the_one_that_runs(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, first = await rig.ask("one")
            rig.chats.presets.set_settings(chat, TERSE)
            rig.engine.start(first)
            rig.engine.finish(first)
            await until(lambda: not reply.status.is_alive)
            _, _, second = await rig.ask("two", chat)
            before, after = rig.engine.requests[first], rig.engine.requests[second]
            assert (before.sampling, before.max_tokens) == (SamplingParams(), None)
            assert (after.sampling, after.max_tokens, after.stop) == (TERSE.sampling, 60, ("END",))
            assert isinstance(after.prompt, Chat)
            assert after.prompt.messages[0].content == "Be terse."
        async with open_chats(path) as rig:
            assert rig.chats.chats[0].settings == TERSE

    asyncio.run(run())


def test_a_preset_is_saved_taken_by_another_chat_and_known_after_a_restart(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            presets = rig.chats.presets
            one, two = [(await rig.ask(text))[0] for text in ("one", "two")]
            presets.set_settings(one, TERSE)
            assert presets.is_changed(one)
            terse = await presets.save_as(one, " Terse ")
            assert terse is not None
            assert await presets.save_as(one, "  ") is None
            assert not presets.is_changed(one)
            presets.apply(two, terse)
            assert two.settings == TERSE
        async with open_chats(path) as rig:
            presets = rig.chats.presets
            for chat in rig.chats.chats:
                preset = presets.preset_of(chat)
                assert preset is not None
                assert (preset.name, preset.settings) == ("Terse", TERSE)
            presets.apply(rig.chats.chats[0], None)
            assert rig.chats.chats[0].settings == ChatSettings()
            assert not presets.is_changed(rig.chats.chats[0])

    asyncio.run(run())


def test_saving_under_a_name_that_is_there_replaces_that_preset(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            presets = rig.chats.presets
            chat = (await rig.ask("one"))[0]
            first = await presets.save_as(chat, "Mine")
            presets.set_settings(chat, TERSE)
            second = await presets.save_as(chat, "mine")
            assert first is not None
            assert second is not None
            assert first.preset_id == second.preset_id
            assert [one.settings for one in presets.presets] == [TERSE]

    asyncio.run(run())


def test_presets_are_renamed_and_deleted_with_a_way_back(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            presets, offered = rig.chats.presets, list[Undo]()
            rig.chats.book.undo_offered.connect(offered.append)
            chat = (await rig.ask("one"))[0]
            await presets.save_as(chat, "B")
            presets.set_settings(chat, TERSE)
            mine = await presets.save_as(chat, "Z")
            assert mine is not None
            await presets.rename(mine, "b")  # taken
            await presets.rename(mine, "A")
            assert [one.name for one in presets.presets] == ["A", "B"]
            await presets.delete(presets.presets[0])
            assert (presets.preset_of(chat), chat.settings) == (None, TERSE)
            await offered[-1].run()
            assert presets.preset_of(chat) == presets.presets[0]
        async with open_chats(path) as rig:
            assert [one.name for one in rig.chats.presets.presets] == ["A", "B"]

    asyncio.run(run())
