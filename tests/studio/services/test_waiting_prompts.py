"""Prompts that wait for a model, or for room on the disk: each is sent in its turn, or waits for the user."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.api import Chat, EngineState, ModelChanged
from fakes.chat_rig import ChatRig, open_chats, until
from fakes.fake_engine import TINY_MODEL, FakeEngine
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation
from studio.models.errors import StoreError
from studio.services.chat_prompt import wrapped

NOTE = Attachment(name="note.txt", kind=AttachmentKind.TEXT, text="Leeks, three.", num_tokens=5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def texts(chat: Conversation) -> list[str]:
    return [message.text for message in chat.messages]


def last_prompt(rig: ChatRig) -> str:
    prompt = list(rig.engine.requests.values())[-1].prompt
    assert isinstance(prompt, Chat)
    return prompt.messages[-1].content


def test_a_prompt_given_while_a_model_loads_is_sent_once_it_is_ready(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(auto=False, ready=False)) as rig:
            chat, other = await rig.chats.new_chat(), await rig.chats.new_chat()
            await rig.chats.drafts.attach(chat, NOTE)
            assert await rig.chats.drafts.queue_for_model(chat, "early")
            assert not await rig.chats.drafts.queue_for_model(chat, "again")
            assert not await rig.chats.drafts.queue_for_model(other, " \n")
            assert not rig.engine.requests
            rig.engine.emit(ModelChanged(state=EngineState.FAILED, model=None))
            rig.engine.emit(ModelChanged(state=EngineState.LOADING, model=TINY_MODEL))
            assert chat.queued is not None
            rig.engine._snapshot = FakeEngine.ready_snapshot(TINY_MODEL)
            rig.engine.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL))
            await until(lambda: rig.engine.requests)
            assert last_prompt(rig) == f"{wrapped(NOTE)}\n\nearly"
            assert (chat.queued, other.messages) == (None, [])

    asyncio.run(run())


def test_a_prompt_that_waited_for_a_model_when_the_program_ended_is_sent_when_there_is_one(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(auto=False, ready=False)) as rig:
            chat = await rig.chats.new_chat()
            await rig.chats.drafts.attach(chat, NOTE)
            await rig.chats.drafts.queue_for_model(chat, "early")
        async with open_chats(path, FakeEngine(auto=False, ready=False)) as rig:
            (chat,) = rig.chats.chats
            assert chat.queued is not None
            assert chat.queued.waits_for_model
            rig.engine._snapshot = FakeEngine.ready_snapshot(TINY_MODEL)
            rig.engine.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL))
            await until(lambda: rig.engine.requests)
            assert last_prompt(rig) == f"{wrapped(NOTE)}\n\nearly"
            assert texts(chat) == ["early", ""]
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            assert chat.queued is None

    asyncio.run(run())


def test_a_prompt_that_waited_behind_a_reply_when_the_program_ended_waits_for_the_user(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, _, request_id = await rig.ask("first")
            rig.engine.start(request_id)
            await rig.chats.drafts.attach(chat, NOTE)
            assert await rig.chats.drafts.queue(chat, "second")
        async with open_chats(path, FakeEngine(auto=False)) as rig:
            (chat,) = rig.chats.chats
            rig.engine.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL))
            assert chat.queued is not None
            assert not await rig.chats.drafts.send_waiting(chat)
            assert not rig.engine.requests
            assert await rig.chats.drafts.send_now(chat)
            await until(lambda: rig.engine.requests)
            assert last_prompt(rig) == f"first\n\n{wrapped(NOTE)}\n\nsecond"

    asyncio.run(run())


async def a_prompt_that_waits_for_a_model(rig: ChatRig) -> Conversation:
    chat = await rig.chats.new_chat()
    await rig.chats.drafts.attach(chat, NOTE)
    assert await rig.chats.drafts.queue_for_model(chat, "early")
    await until(lambda: rig.rows("SELECT queued FROM chats") == [("early",)])
    return chat


def say_ready(rig: ChatRig) -> None:
    rig.engine._snapshot = FakeEngine.ready_snapshot(TINY_MODEL)
    rig.engine.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL))


def waits_for_store(chat: Conversation) -> bool:
    return chat.queued is not None and chat.queued.waits_for_store


@pytest.mark.parametrize("is_read", [True, False], ids=["read", "unread"])
def test_a_prompt_whose_turn_came_while_nothing_could_be_stored_is_sent_as_soon_as_it_can(
    path: Path, *, is_read: bool
) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(auto=False, ready=False)) as rig:
            chat = await a_prompt_that_waits_for_a_model(rig)
            if not is_read:
                chat.is_loaded = False
            async with rig.read_only():
                say_ready(rig)
                await until(lambda: waits_for_store(chat))
                assert rig.notice_codes == ["store_failed"]
                (notice,) = rig.notices.notices.notices
                assert notice.detail.endswith("; Layby tries again by itself")
                rig.notices.resolve("store_failed")  # read, and closed
                for _ in range(3):  # it is tried over and over, and not told each time
                    await rig.store.load_chats()
                    await asyncio.sleep(0)
                assert (rig.notice_codes, rig.engine.requests) == ([], {})
            await until(lambda: rig.engine.requests)
            assert last_prompt(rig) == f"{wrapped(NOTE)}\n\nearly"
            assert (chat.queued, texts(chat)) == (None, ["early", ""])
            assert len(rig.engine.requests) == 1
            assert rig.notice_codes == []

    asyncio.run(run())


def test_the_notice_of_a_prompt_that_could_not_be_stored_goes_with_its_cause(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, reply, request_id = await rig.ask("first")
            rig.engine.start(request_id)
            assert await rig.chats.drafts.queue(chat, "second")
            rig.engine.say(request_id, "answer")
            async with rig.read_only():
                rig.engine.finish(request_id)
                await until(lambda: waits_for_store(chat))
                assert not reply.status.is_alive
                assert rig.notice_codes == ["store_failed"]
            await until(lambda: len(rig.engine.requests) == 2)
            assert last_prompt(rig) == "second"
            await until(lambda: rig.notice_codes == [])

    asyncio.run(run())


def test_what_is_sent_later_does_not_overtake_a_prompt_that_could_not_be_stored(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(auto=False, ready=False)) as rig:
            chat = await a_prompt_that_waits_for_a_model(rig)
            async with rig.read_only():
                say_ready(rig)
                await until(lambda: waits_for_store(chat))
                assert not await rig.chats.drafts.send_behind(chat, "late")
                assert not rig.engine.requests
            while not await rig.chats.drafts.send_behind(chat, "late"):
                await rig.store.load_chats()  # it is being sent without us right now
            assert chat.queued is not None
            assert (chat.queued.text, texts(chat)) == ("late", ["early", ""])
            await until(lambda: rig.engine.requests)
            (request_id,) = rig.engine.requests
            rig.engine.start(request_id)
            rig.engine.finish(request_id)
            await until(lambda: texts(chat) == ["early", "", "late", ""])

    asyncio.run(run())


@pytest.mark.parametrize("how", ["taken back", "deleted"])
def test_a_prompt_that_could_not_be_stored_is_not_sent_where_it_is_no_longer_wanted(
    path: Path, how: str
) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, _, request_id = await rig.ask("first")
            assert await rig.chats.drafts.queue(chat, "second")
            async with rig.read_only():
                rig.engine.start(request_id)
                rig.engine.finish(request_id)
                await until(lambda: waits_for_store(chat))
                if how == "taken back":
                    assert await rig.chats.drafts.take_back(chat) == "second"
                else:
                    await rig.chats.delete(chat)
            await until(lambda: not rig.chats._saver._owed)
            assert list(rig.engine.requests) == [request_id]

    asyncio.run(run())


def test_files_that_cannot_be_stored_leave_queue_and_draft_as_they_were(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, _, _ = await rig.ask("first")
            await rig.chats.drafts.attach(chat, NOTE)
            rig.chats.set_draft(chat, "second")
            async with rig.read_only():
                with pytest.raises(StoreError):
                    await rig.chats.drafts.queue(chat, "second")
                assert (chat.queued, chat.draft) == (None, "second")
                assert [one.name for one in chat.draft_attachments] == ["note.txt"]
            assert await rig.chats.drafts.queue(chat, "second")
            async with rig.read_only():
                with pytest.raises(StoreError):
                    await rig.chats.drafts.take_back(chat)
                assert chat.queued is not None
                assert (chat.draft, chat.draft_attachments) == ("", ())
            assert await rig.chats.drafts.take_back(chat) == "second"
            assert [one.name for one in chat.draft_attachments] == ["note.txt"]

    asyncio.run(run())


def test_what_a_waiting_prompt_must_fit_behind_is_read_first(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat, _, request_id = await rig.ask("word " * 1000)
            rig.engine.start(request_id)
            rig.engine.say(request_id, "text " * 300)
            rig.engine.finish(request_id)
            await until(lambda: chat.running_message is None)
            assert await rig.chats.drafts.queue_for_model(chat, "more " * 900)
        async with open_chats(path, FakeEngine(auto=False, ready=False)) as rig:
            (chat,) = rig.chats.chats
            say_ready(rig)
            await until(lambda: chat.queued is not None and chat.queued.is_too_long)
            assert not rig.engine.requests

    asyncio.run(run())


def test_a_prompt_that_could_not_be_stored_waits_for_the_model_again_where_that_goes(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine(auto=False, ready=False)) as rig:
            chat = await a_prompt_that_waits_for_a_model(rig)
            async with rig.read_only():
                say_ready(rig)
                await until(lambda: waits_for_store(chat))
                rig.engine.emit(ModelChanged(state=EngineState.LOADING, model=TINY_MODEL))
                await until(lambda: not waits_for_store(chat))
            await until(lambda: not rig.chats._saver._owed)
            assert not rig.engine.requests
            say_ready(rig)
            await until(lambda: rig.engine.requests)

    asyncio.run(run())
