"""DraftService: files of a draft, and a prompt that waits for the end of the reply before it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.api import Chat
from engine.errors import DeviceFailure
from fakes.chat_rig import ChatRig, open_chats, until
from fakes.fake_engine import FakeEngine
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation, MessageStatus
from studio.services.chat_prompt import wrapped

NOTE = Attachment(name="note.txt", kind=AttachmentKind.TEXT, text="Leeks, three.", num_tokens=5)
PICTURE = Attachment(
    name="a.png", kind=AttachmentKind.IMAGE, data=b"\x89PNG\x00", path="/home/a.png"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def texts(chat: Conversation) -> list[str]:
    return [message.text for message in chat.messages]


def last_prompt(rig: ChatRig) -> str:
    prompt = list(rig.engine.requests.values())[-1].prompt
    assert isinstance(prompt, Chat)
    return prompt.messages[-1].content


def test_files_wait_with_the_draft_and_go_with_the_prompt(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            await rig.chats.drafts.attach(chat, NOTE)
            await rig.chats.drafts.attach(chat, PICTURE)
        async with open_chats(path, FakeEngine()) as rig:
            (chat,) = rig.chats.chats
            await rig.chats.open_chat(chat.chat_id)
            note, picture = chat.draft_attachments
            assert (note.text, note.num_tokens, note.kind) == ("Leeks, three.", 5, NOTE.kind)
            assert (picture.data, picture.path) == (PICTURE.data, PICTURE.path)
            _, reply, _ = await rig.ask("What is it?", chat)
            assert chat.draft_attachments == ()
            assert last_prompt(rig) == f"{wrapped(NOTE)}\n\nWhat is it?"
            await until(lambda: not reply.status.is_alive)
            await rig.chats.turns.edit_prompt(chat, chat.messages[0], "And now?")
            await until(lambda: chat.running_message is None)
            assert last_prompt(rig) == f"{wrapped(NOTE)}\n\nAnd now?"
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            await rig.chats.open_chat(chat.chat_id)
            assert chat.draft_attachments == ()
            for version in chat.versions_of(chat.messages[0]):
                assert [one.name for one in version.attachments] == ["note.txt", "a.png"]

    asyncio.run(run())


def test_a_file_taken_out_is_gone_and_files_alone_may_be_sent(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            await rig.chats.drafts.attach(chat, NOTE)
            await rig.chats.drafts.attach(chat, PICTURE)
            await rig.chats.drafts.detach(chat, chat.draft_attachments[1])
            assert rig.rows("SELECT name FROM attachments") == [("note.txt",)]
            assert await rig.chats.send(chat, "")
            assert chat.title == "note.txt"
            await until(lambda: rig.engine.requests)
            assert last_prompt(rig) == wrapped(NOTE)

    asyncio.run(run())


def test_a_queued_prompt_is_sent_when_the_reply_has_ended_and_the_draft_stays(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("first")
            await rig.chats.drafts.attach(chat, NOTE)
            assert await rig.chats.drafts.queue(chat, "second")
            assert (chat.draft, chat.draft_attachments) == ("", ())
            assert not await rig.chats.drafts.queue(chat, "third")
            rig.chats.set_draft(chat, "third")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "answer")
            rig.engine.finish(request_id)
            await until(lambda: len(rig.engine.requests) == 2)
            assert reply.status is MessageStatus.DONE
            assert texts(chat) == ["first", "answer", "second", ""]
            assert (chat.queued, chat.draft) == (None, "third")
            assert last_prompt(rig) == f"{wrapped(NOTE)}\n\nsecond"
            await until(lambda: rig.rows("SELECT queued, draft FROM chats") == [(None, "third")])

    asyncio.run(run())


@pytest.mark.parametrize("how", ["stopped", "failed"])
def test_after_a_reply_that_did_not_end_well_the_queued_prompt_waits_for_the_user(
    path: Path, how: str
) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("first")
            await rig.chats.drafts.queue(chat, "second")
            if how == "stopped":
                rig.chats.stop(chat)
            else:
                rig.engine.fail(request_id, DeviceFailure("the device is gone"))
            await until(lambda: not reply.status.is_alive)
            await until(lambda: not rig.engine.alive)
            assert chat.queued is not None
            assert len(rig.engine.requests) == 1
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            assert chat.queued is not None
            assert await rig.chats.drafts.send_now(chat)
            assert texts(chat) == ["first", "", "second", ""]

    asyncio.run(run())


def test_a_queued_prompt_is_taken_back_before_what_was_written_since(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, _, _ = await rig.ask("first")
            await rig.chats.drafts.attach(chat, NOTE)
            await rig.chats.drafts.queue(chat, "second")
            rig.chats.set_draft(chat, "third")
            assert await rig.chats.drafts.take_back(chat) == "second\n\nthird"
            assert chat.queued is None
            assert [one.name for one in chat.draft_attachments] == ["note.txt"]
            assert await rig.chats.drafts.take_back(chat) == "second\n\nthird"
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            await rig.chats.open_chat(chat.chat_id)
            assert chat.draft == "second\n\nthird"
            assert [one.name for one in chat.draft_attachments] == ["note.txt"]

    asyncio.run(run())


def test_send_now_stops_the_reply_and_sends_at_once(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("first")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "so far")
            await until(lambda: reply.text)
            assert not await rig.chats.drafts.send_now(chat)
            await rig.chats.drafts.queue(chat, "second")
            assert await rig.chats.drafts.send_now(chat)
            await until(lambda: request_id in rig.engine.aborted)
            assert texts(chat) == ["first", "so far", "second", ""]
            assert reply.status is MessageStatus.STOPPED

    asyncio.run(run())


def test_nothing_is_queued_where_nothing_runs_or_nothing_is_written(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            assert not await rig.chats.drafts.queue(await rig.chats.new_chat(), "hello")
            chat, _, _ = await rig.ask("first")
            assert not await rig.chats.drafts.queue(chat, " \n")
            assert chat.queued is None

    asyncio.run(run())


def test_a_queued_prompt_for_which_there_is_no_room_waits_and_says_so(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("word " * 1000)
            rig.engine.start(request_id)
            assert await rig.chats.drafts.queue(chat, "more " * 900)
            rig.engine.say(request_id, "text " * 300)
            rig.engine.finish(request_id)
            await until(lambda: chat.queued is not None and chat.queued.is_too_long)
            assert not reply.status.is_alive
            assert len(rig.engine.requests) == 1
            assert not await rig.chats.drafts.send_now(chat)
            assert (await rig.chats.drafts.take_back(chat)).startswith("more more")

    asyncio.run(run())


def test_sending_a_queued_prompt_now_stops_no_reply_for_one_that_does_not_fit(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("word " * 1000)
            rig.engine.start(request_id)
            assert await rig.chats.drafts.queue(chat, "more " * 2000)
            assert not await rig.chats.drafts.send_now(chat)
            assert reply.status.is_alive
            assert chat.queued is not None
            assert chat.queued.is_too_long

    asyncio.run(run())


def test_the_beginning_of_a_draft_is_told_but_not_each_letter_of_a_long_one(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            told: list[str] = []
            rig.chats.chat_changed.connect(lambda changed: told.append(changed.draft))
            for text in (
                "",
                " ",
                "D",
                " De",
                "De\n",
                "De ar" + " x" * 100,
                "De ar" + " x" * 200,
                "",
            ):
                rig.chats.set_draft(chat, text)
            assert [text[:5] for text in told] == ["D", " De", "De ar", ""]

    asyncio.run(run())
