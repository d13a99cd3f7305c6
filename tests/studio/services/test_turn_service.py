"""TurnService: editing and asking again keep what was there; a reply goes on from its own text."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import Chat, EngineSnapshot, FinishReason
from engine.errors import DeviceFailure
from fakes.chat_rig import ChatRig, open_chats, until
from fakes.fake_engine import FakeEngine
from studio.models.chat import Conversation, Message, MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.models.length_limit import LengthLimit


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def texts(chat: Conversation) -> list[str]:
    return [message.text for message in chat.messages]


def asked(rig: ChatRig) -> list[tuple[str, str]]:
    """The turns of the newest request."""
    prompt = list(rig.engine.requests.values())[-1].prompt
    assert isinstance(prompt, Chat)
    return [(turn.role, turn.content) for turn in prompt.messages]


async def ask_again(rig: ChatRig, chat: Conversation, known: int) -> str:
    """The id of the request number `known + 1`, once the engine has it."""
    await until(lambda: len(rig.engine.requests) > known)
    return list(rig.engine.requests)[-1]


async def answered(
    rig: ChatRig, text: str, answer: str, chat: Conversation | None = None
) -> Message:
    """A turn whose reply is done."""
    _, reply, request_id = await rig.ask(text, chat)
    rig.engine.start(request_id)
    rig.engine.say(request_id, answer)
    rig.engine.finish(request_id)
    await until(lambda: reply.status is MessageStatus.DONE)
    return reply


def chat_of(rig: ChatRig, message: Message) -> Conversation:
    return next(chat for chat in rig.chats.chats if chat.chat_id == message.chat_id)


def test_an_edited_prompt_is_a_version_beside_the_old_one_and_both_outlive_a_restart(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            first = await answered(rig, "three days", "Day one")
            chat = chat_of(rig, first)
            await answered(rig, "and then?", "Day two", chat)
            told: list[Conversation] = []
            rig.chats.path_changed.connect(told.append)
            assert await rig.chats.turns.edit_prompt(chat, chat.messages[0], "two days")
            assert (texts(chat), told) == (["two days", ""], [chat])
            request_id = await ask_again(rig, chat, 2)
            assert asked(rig) == [("user", "two days")]
            rig.engine.start(request_id)
            rig.engine.say(request_id, "Only one")
            rig.engine.finish(request_id)
            await until(lambda: chat.running_message is None)
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            await rig.chats.open_chat(chat.chat_id)
            assert texts(chat) == ["two days", "Only one"]
            old, new = chat.versions_of(chat.messages[0])
            assert (old.text, new.text) == ("three days", "two days")
            assert rig.chats.versions.choose(chat, old)
            assert texts(chat) == ["three days", "Day one", "and then?", "Day two"]
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            assert chat.last_status is MessageStatus.DONE
            await rig.chats.open_chat(chat.chat_id)
            assert texts(chat) == ["three days", "Day one", "and then?", "Day two"]

    asyncio.run(run())


def test_regenerating_keeps_every_version_and_asks_the_same(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="one two")) as rig:
            chat, reply, _ = await rig.ask("count")
            await until(lambda: not reply.status.is_alive)
            for number in range(1, 7):
                assert await rig.chats.turns.regenerate(chat, chat.messages[-1])
                await until(lambda: chat.running_message is None)
                assert len(chat.versions_of(chat.messages[-1])) == number + 1
                assert asked(rig) == [("user", "count")]
            assert await rig.chats.turns.regenerate(chat, chat.messages[0])
            await until(lambda: chat.running_message is None)
            assert len(chat.versions_of(chat.messages[-1])) == 8
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            await rig.chats.open_chat(chat.chat_id)
            versions = chat.versions_of(chat.messages[-1])
            assert [one.text for one in versions] == ["one two"] * 8
            assert versions[-1] is chat.messages[-1]

    asyncio.run(run())


def test_editing_stops_a_running_reply_and_keeps_its_text_as_a_version(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("long story")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "Once")
            await until(lambda: reply.text)
            assert await rig.chats.turns.edit_prompt(chat, chat.messages[0], "short story")
            assert (reply.status, reply.text) == (MessageStatus.STOPPED, "Once")
            await until(lambda: request_id in rig.engine.aborted)
            await ask_again(rig, chat, 1)
            assert asked(rig) == [("user", "short story")]
            old = chat.versions_of(chat.messages[0])[0]
            assert chat.tree.newest_end(old) is reply

    asyncio.run(run())


def test_a_reply_cut_by_its_length_says_whose_limit_it_was(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("count")
            for window_tokens, next_most, note in (
                (1024, None, ""),
                (6, 1, LengthLimit.POOL.value),
                (6, None, LengthLimit.REPLY.value),
            ):
                rig.engine.publish_window(window_tokens)
                rig.engine.start(request_id)
                rig.engine.say(request_id, "one ")
                rig.engine.finish(request_id, FinishReason.LENGTH)
                await until(lambda: reply.status is MessageStatus.LENGTH)
                assert reply.note == note
                chat.settings = ChatSettings(max_tokens=next_most)
                known = len(rig.engine.requests)
                assert rig.chats.turns.continue_reply(chat)
                assert reply.note == ""
                request_id = await ask_again(rig, chat, known)
            rig.engine.finish(request_id)
            await until(lambda: reply.status is MessageStatus.DONE)
            assert reply.note == ""

    asyncio.run(run())


def test_a_cut_reply_goes_on_from_its_text_and_its_figures_go_on_too(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("count")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "one ")
            rig.engine.say(request_id, "two ")
            assert not rig.chats.turns.continue_reply(chat)
            rig.engine.finish(request_id, FinishReason.LENGTH)
            await until(lambda: reply.status is MessageStatus.LENGTH)
            assert rig.chats.turns.continue_reply(chat)
            assert chat.running_message is reply
            second = await ask_again(rig, chat, 1)
            assert second != request_id
            prompt = rig.engine.requests[second].prompt
            assert isinstance(prompt, Chat)
            assert prompt.continues
            assert asked(rig) == [("user", "count"), ("assistant", "one two ")]
            rig.engine.start(second)
            rig.engine.say(second, "three")
            await until(lambda: reply.text == "one two three")
            assert reply.stats.completion_tokens == 3
            rig.engine.finish(second)
            await until(lambda: reply.status is MessageStatus.DONE)
            assert reply.stats.completion_tokens == 3
            assert not rig.chats.turns.continue_reply(chat)
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            await rig.chats.open_chat(chat.chat_id)
            assert texts(chat) == ["count", "one two three"]

    asyncio.run(run())


def test_what_is_left_of_a_stopped_request_never_reaches_the_one_that_goes_on(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("count")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "one ")
            await until(lambda: reply.text)
            rig.chats.stop(chat)
            assert rig.chats.turns.continue_reply(chat)
            second = await ask_again(rig, chat, 1)
            await until(lambda: request_id in rig.engine.aborted)
            assert reply.status is MessageStatus.QUEUED
            rig.engine.start(second)
            rig.engine.say(second, "two")
            rig.engine.finish(second)
            await until(lambda: reply.status is MessageStatus.DONE)
            assert reply.text == "one two"

    asyncio.run(run())


def test_a_reply_that_failed_before_its_first_word_is_simply_asked_again(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("hello")
            rig.engine.fail(request_id, DeviceFailure("the device is gone"))
            await until(lambda: reply.status is MessageStatus.FAILED)
            assert rig.chats.turns.continue_reply(chat)
            second = await ask_again(rig, chat, 1)
            assert asked(rig) == [("user", "hello")]
            rig.engine.start(second)
            rig.engine.say(second, "Hi")
            rig.engine.finish(second)
            await until(lambda: reply.status is MessageStatus.DONE)
            assert (reply.text, reply.note) == ("Hi", "")

    asyncio.run(run())


def test_a_reply_whose_state_is_on_disk_goes_on_with_that(path: Path) -> None:
    class KeepingEngine(FakeEngine):
        saved: tuple[str, ...] = ()

        def snapshot(self) -> EngineSnapshot:
            return replace(super().snapshot(), saved_ids=self.saved)

    async def run() -> None:
        engine = KeepingEngine(auto=False)
        async with open_chats(path, engine) as rig:
            chat, reply, request_id = await rig.ask("count")
            engine.start(request_id)
            engine.say(request_id, "one ")
            await until(lambda: reply.text)
            rig.chats.stop(chat)
            await until(lambda: request_id in engine.aborted)
            engine.saved = (request_id,)
            engine.requests.clear()
            assert rig.chats.turns.continue_reply(chat)
            await until(lambda: engine.requests)
            assert engine.requests[request_id].resumes

    asyncio.run(run())


def test_a_full_disk_leaves_the_versions_as_they_were(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            reply = await answered(rig, "question", "answer")
            chat = chat_of(rig, reply)
            full = "PRAGMA max_page_count = 1"
            await rig.store.file.do(lambda database: database.execute(full).fetchone())
            assert not await rig.chats.turns.edit_prompt(chat, chat.messages[0], "x" * 100_000)
            assert texts(chat) == ["question", "answer"]
            assert len(chat.versions_of(chat.messages[0])) == 1
            assert rig.notice_codes == ["store_full"]
            assert len(rig.engine.requests) == 1

    asyncio.run(run())


def test_a_tick_while_a_prompt_is_being_stored_leaves_nothing_as_it_was_before(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = chat_of(rig, await answered(rig, "one", "1"))
            rig.chats.set_draft(chat, "two")
            await until(lambda: rig.rows("SELECT draft FROM chats") == [("two",)])
            sending = asyncio.ensure_future(rig.chats.send(chat, "two"))
            await asyncio.sleep(0)
            await rig.store.save([chat], [])  # behind the prompt, with the chat as it is in memory
            assert await sending
            expected = [("", chat.messages[-1].message_id)]
            await until(lambda: rig.rows("SELECT draft, leaf_id FROM chats") == expected)

    asyncio.run(run())


def test_what_cannot_be_edited_is_left_alone(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            reply = await answered(rig, "question", "answer")
            chat = chat_of(rig, reply)
            turns = rig.chats.turns
            assert not await turns.edit_prompt(chat, chat.messages[0], " \n")
            assert not await turns.edit_prompt(chat, reply, "a reply is no prompt")
            other = (await rig.ask("elsewhere"))[0]
            assert not await turns.regenerate(chat, other.messages[-1])
            assert not await turns.edit_prompt(chat, other.messages[0], "not of this chat")
            assert texts(chat) == ["question", "answer"]

    asyncio.run(run())
