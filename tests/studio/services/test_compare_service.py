"""CompareService: columns ask the same, those alike read their prompt once, and one of them is gone on with."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import Chat, SamplingParams
from fakes.chat_rig import ChatRig, open_chats, until
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation
from studio.models.chat_settings import ChatSettings
from studio.models.undo import Undo

COLD = ChatSettings(sampling=SamplingParams(temperature=0.0))
HOT = ChatSettings(sampling=SamplingParams(temperature=1.5))
TERSE = replace(COLD, system_prompt="Be terse.")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


async def asked_chat(rig: ChatRig) -> Conversation:
    chat, _, request_id = await rig.ask("hello")
    rig.engine.start(request_id)
    rig.engine.say(request_id, "Hi.")
    rig.engine.finish(request_id)
    await until(lambda: chat.running_message is None)
    rig.engine.requests.clear()
    return chat


def test_columns_alike_wait_for_the_first_to_have_read_and_others_do_not(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await asked_chat(rig)
            columns = await rig.chats.comparing.start(chat, "And now?", (COLD, HOT, TERSE))
            asking = asyncio.ensure_future(rig.chats.comparing.ask(columns, "And now?"))
            await until(lambda: len(rig.engine.requests) == 2)
            cold, terse = rig.engine.requests.values()
            assert [cold.sampling, terse.sampling] == [COLD.sampling, TERSE.sampling]
            assert isinstance(terse.prompt, Chat)
            assert terse.prompt.messages[0].content == "Be terse."
            rig.engine.start(cold.request_id)
            rig.engine.say(cold.request_id, "Now")
            await asking
            await until(lambda: len(rig.engine.requests) == 3)
            hot = list(rig.engine.requests.values())[-1]
            assert (hot.sampling, hot.prompt) == (HOT.sampling, cold.prompt)
            assert [message.text for message in chat.messages] == ["hello", "Hi."]

    asyncio.run(run())


def test_a_first_column_that_is_stopped_or_parked_keeps_nobody_waiting(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await asked_chat(rig)
            columns = await rig.chats.comparing.start(chat, "And now?", (COLD, HOT))
            asking = asyncio.ensure_future(rig.chats.comparing.ask(columns, "And now?"))
            await until(lambda: rig.engine.requests)
            rig.chats.stop(columns[0])
            await asking
            assert columns[1].running_message is not None

    asyncio.run(run())


def test_the_files_of_the_draft_are_in_every_column(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await asked_chat(rig)
            note = Attachment(name="n", kind=AttachmentKind.TEXT, text="read me")
            await rig.chats.drafts.attach(chat, note)
            columns = await rig.chats.comparing.start(chat, "And now?", (COLD, TERSE))
            await rig.chats.comparing.ask(columns, "And now?")
            for column in columns:
                assert [one.text for one in column.messages[-2].attachments] == ["read me"]
            assert len(chat.draft_attachments) == 1

    asyncio.run(run())


def test_one_is_picked_and_the_others_can_be_brought_back(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            offered: list[Undo] = []
            rig.chats.book.undo_offered.connect(offered.append)
            chat = await asked_chat(rig)
            columns = await rig.chats.comparing.start(chat, "And now?", (COLD, TERSE))
            await rig.chats.comparing.ask(columns, "And now?")
            await until(lambda: len(rig.engine.requests) == 2)
            await rig.chats.comparing.pick(columns[1])
            assert rig.chats.comparing.current is None
            assert (chat.title, columns[1].title) == ("hello", "hello (2)")
            assert set(rig.chats.chats) == {chat, columns[1]}
            await until(lambda: len(rig.engine.aborted) == 1)
            await offered[-1].run()
            assert set(rig.chats.chats) == {chat, *columns}

    asyncio.run(run())


def test_a_column_deleted_by_hand_leaves_the_comparison(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            empty = await rig.chats.new_chat()
            columns = await rig.chats.comparing.start(empty, "And now?", (COLD, HOT, TERSE))
            assert [one.title for one in columns] == [f"{n} · And now?" for n in (1, 2, 3)]
            await rig.chats.delete(columns[0])
            assert rig.chats.comparing.current is not None
            assert rig.chats.comparing.current.columns == columns[1:]
            assert rig.chats.comparing.current.place(columns[1]) == 2, "as its title says"
            await rig.chats.delete(columns[1])
            assert rig.chats.comparing.current is None

    asyncio.run(run())
