"""VersionService: which version is shown, one message deleted and put back, branches and duplicates."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fakes.chat_rig import ChatRig, open_chats, until
from fakes.fake_engine import FakeEngine
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation, MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.models.undo import Undo, UndoKind


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def texts(chat: Conversation) -> list[str]:
    return [message.text for message in chat.messages]


async def chat_with(rig: ChatRig, *prompts: str) -> Conversation:
    """A chat with these prompts, each answered."""
    chat = await rig.chats.new_chat()
    for prompt in prompts:
        _, reply, _ = await rig.ask(prompt, chat)
        await until(lambda: not reply.status.is_alive)  # noqa: B023 - awaited here
    return chat


def undos(rig: ChatRig) -> list[Undo]:
    offered: list[Undo] = []
    rig.chats.book.undo_offered.connect(offered.append)
    return offered


async def reopened(path: Path) -> list[list[str]]:
    async with open_chats(path) as rig:
        for chat in rig.chats.chats:
            await rig.chats.open_chat(chat.chat_id)
        return [texts(chat) for chat in rig.chats.chats]


def test_a_reply_written_by_hand_stands_beside_the_models(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="theirs")) as rig:
            chat = await chat_with(rig, "a", "b")
            assert await rig.chats.versions.edit_reply(chat, chat.messages[1], "mine")
            assert texts(chat) == ["a", "mine"]
            theirs, mine = chat.versions_of(chat.messages[1])
            assert (theirs.text, mine.status) == ("theirs", MessageStatus.DONE)
            assert len(rig.engine.requests) == 2
        assert await reopened(path) == [["a", "mine"]]

    asyncio.run(run())


def test_versions_stay_as_they_are_while_a_reply_is_being_written(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("a")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "text")
            await until(lambda: reply.text)
            versions = rig.chats.versions
            assert not versions.choose(chat, chat.messages[0])
            assert not await versions.delete_message(chat, chat.messages[0])
            assert not await versions.edit_reply(chat, reply, "mine")
            assert texts(chat) == ["a", "text"]

    asyncio.run(run())


def test_a_deleted_message_leaves_what_follows_it_and_comes_back(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="r")) as rig:
            chat, offered = await chat_with(rig, "a", "b", "c"), undos(rig)
            assert await rig.chats.versions.delete_message(chat, chat.messages[2])
            assert texts(chat) == ["a", "r", "r", "c", "r"]
        assert await reopened(path) == [["a", "r", "r", "c", "r"]]
        async with open_chats(path, FakeEngine(reply="r")) as rig:
            (chat,) = rig.chats.chats
            await rig.chats.open_chat(chat.chat_id)
            offered = undos(rig)
            assert await rig.chats.versions.delete_message(chat, chat.messages[0])
            assert texts(chat) == ["r", "r", "c", "r"]
            assert offered[0].kind is UndoKind.MESSAGE_DELETED
            await offered[0].run()
            assert texts(chat) == ["a", "r", "r", "c", "r"]
        assert await reopened(path) == [["a", "r", "r", "c", "r"]]

    asyncio.run(run())


def test_the_last_message_gives_way_to_another_version_of_it_or_to_the_one_before(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="r")) as rig:
            chat, offered = await chat_with(rig, "a"), undos(rig)
            await rig.chats.versions.edit_reply(chat, chat.messages[1], "second")
            await rig.chats.versions.delete_message(chat, chat.messages[1])
            assert texts(chat) == ["a", "r"]
            await rig.chats.versions.delete_message(chat, chat.messages[1])
            assert texts(chat) == ["a"]
            await rig.chats.versions.delete_message(chat, chat.messages[0])
            assert texts(chat) == []
            for undo, expected in zip(
                reversed(offered), (["a"], ["a", "r"], ["a", "second"]), strict=True
            ):
                await undo.run()
                assert texts(chat) == expected
        assert await reopened(path) == [["a", "second"]]

    asyncio.run(run())


def test_a_message_cannot_come_back_onto_one_that_is_gone(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="r")) as rig:
            chat, offered = await chat_with(rig, "a"), undos(rig)
            await rig.chats.versions.delete_message(chat, chat.messages[1])
            await rig.chats.versions.delete_message(chat, chat.messages[0])
            await offered[0].run()
            assert texts(chat) == []

    asyncio.run(run())


def test_a_branch_has_the_messages_up_to_its_own_and_goes_its_own_way(path: Path) -> None:
    note = Attachment(name="note.txt", kind=AttachmentKind.TEXT, text="read me")

    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="r")) as rig:
            chat = await rig.chats.new_chat(settings=ChatSettings(system_prompt="Be brief."))
            await rig.chats.drafts.attach(chat, note)
            for prompt in ("a", "b"):
                await rig.ask(prompt, chat)
                await until(lambda: chat.running_message is None)
            branch = await rig.chats.versions.branch(chat, chat.messages[1])
            assert branch is not None
            assert (rig.chats.chats[0], branch.title) == (branch, "a (2)")
            assert branch.settings.system_prompt == "Be brief."
            assert texts(branch) == ["a", "r"]
            assert branch.messages[0].attachments[0].text == "read me"
            await rig.ask("c", branch)
            await until(lambda: branch.running_message is None)
            assert texts(chat) == ["a", "r", "b", "r"]
            again = await rig.chats.versions.branch(branch, branch.messages[0])
            assert again is not None
            assert again.title == "a (3)"
        assert await reopened(path) == [["a"], ["a", "r", "c", "r"], ["a", "r", "b", "r"]]

    asyncio.run(run())


def test_a_branch_from_a_running_reply_holds_its_text_so_far(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("a")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "so far")
            await until(lambda: reply.text)
            branch = await rig.chats.versions.branch(chat, reply)
            assert branch is not None
            copy = branch.messages[-1]
            assert (copy.text, copy.status) == ("so far", MessageStatus.STOPPED)
            assert (reply.status, branch.running_message) == (MessageStatus.WRITING, None)
            rig.engine.say(request_id, ", and on")
            await until(lambda: reply.text == "so far, and on")
            assert copy.text == "so far"

    asyncio.run(run())


def test_a_duplicate_has_all_versions_and_shows_the_same(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(reply="r")) as rig:
            chat = await chat_with(rig, "a")
            await rig.chats.versions.edit_reply(chat, chat.messages[1], "mine")
            rig.chats.versions.choose(chat, chat.versions_of(chat.messages[1])[0])
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            copy = await rig.chats.versions.duplicate(chat)
            assert copy is not None
            assert texts(copy) == ["a", "r"]
            assert [one.text for one in copy.versions_of(copy.messages[1])] == ["r", "mine"]
            empty = await rig.chats.versions.duplicate(await rig.chats.new_chat())
            assert empty is not None
            assert texts(empty) == []
        assert (await reopened(path))[0] == ["a", "r"]

    asyncio.run(run())
