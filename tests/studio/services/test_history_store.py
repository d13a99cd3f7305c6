"""HistoryStore: one owner, nothing half-written, and damaged files set aside with all that can be read carried over."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine.api import SamplingParams
from fakes.chat_rig import read_rows
from studio.models.chat import (
    Conversation,
    Message,
    MessageStatus,
    QueuedPrompt,
    ReplyStats,
    Role,
)
from studio.models.chat_settings import ChatSettings
from studio.models.errors import StoreBroken, StoreBusy, StoreError
from studio.services.history_store import HistoryStore

PAGE_BYTES = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[HistoryStore]:
    store = HistoryStore(path)
    try:
        await store.open()
        yield store
    finally:
        await store.close()


def a_chat(title: str = "Lisbon", updated_s: float = 2.0) -> Conversation:
    return Conversation(chat_id=0, title=title, created_s=1.0, updated_s=updated_s)


def a_message(chat_id: int, text: str, status: MessageStatus = MessageStatus.DONE) -> Message:
    role = Role.USER if status is MessageStatus.DONE else Role.ASSISTANT
    return Message(
        message_id=0, chat_id=chat_id, role=role, text=text, created_s=3.0, status=status
    )


def overwrite(path: Path, first_page: int, num_pages: int) -> bytes:
    """Damage whole pages of a closed file; what the file holds then."""
    data = bytearray(path.read_bytes())
    data[first_page * PAGE_BYTES : (first_page + num_pages) * PAGE_BYTES] = b"\xa5" * (
        num_pages * PAGE_BYTES
    )
    path.write_bytes(data)
    return bytes(data)


async def fill(store: HistoryStore, num_chats: int, text: str = "text") -> None:
    for number in range(num_chats):
        chat = a_chat(f"chat {number}", updated_s=float(number))
        chat.chat_id = await store.add_chat(chat)
        await store.add_messages(
            chat, [a_message(chat.chat_id, f"{text} {number}") for _ in range(4)]
        )


def test_everything_about_a_chat_comes_back(path: Path) -> None:
    chat = a_chat()
    chat.settings = ChatSettings(
        system_prompt="Be brief. Sei kurz. 短く。",
        sampling=SamplingParams(
            temperature=0.1, seed=(1 << 64) - 1, logit_bias=((5, -1.5), (6, 2.0))
        ),
        max_tokens=77,
        stop=("END", "\n\n"),
    )
    chat.draft, chat.has_unread = "a draft", True
    chat.preset_id, chat.folder_id, chat.deleted_s = 3, 4, 5.5
    chat.is_pinned = chat.is_archived = True
    chat.queued = QueuedPrompt(text="and then?")

    async def run() -> None:
        async with opened(path) as store:
            chat.chat_id = await store.add_chat(chat)
            reply = a_message(chat.chat_id, "emoji 🏖, zero \x00, quote '", MessageStatus.FAILED)
            reply.note, reply.stats = (
                "why",
                ReplyStats(prompt_tokens=3, tokens_per_s=1.5, parked_s=2.0),
            )
            (reply.message_id,) = await store.add_messages(chat, [reply])
        async with opened(path) as store:
            (again,) = await store.load_chats()
            for name in (
                *("chat_id", "title", "created_s", "updated_s", "settings", "draft", "has_unread"),
                *("preset_id", "folder_id", "deleted_s", "is_pinned", "is_archived", "queued"),
            ):
                assert getattr(again, name) == getattr(chat, name), name
            (message,) = await store.load_messages(chat.chat_id)
            assert (message.message_id, message.text) == (reply.message_id, reply.text)
            assert (message.status, message.note) == (MessageStatus.FAILED, "why")
            assert message.stats == reply.stats

    asyncio.run(run())


def test_sampling_settings_of_another_version_are_read_as_far_as_known(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with opened(path) as store:
            for _ in range(2):
                await store.add_chat(a_chat())
        database = sqlite3.connect(path, isolation_level=None)
        database.execute(
            """UPDATE chats SET sampling = '{"temperature": 0.5, "later": 1}' WHERE chat_id = 1"""
        )
        database.execute("""UPDATE chats SET sampling = '{"temperature": -3}' WHERE chat_id = 2""")
        database.close()
        async with opened(path) as store:
            second, first = await store.load_chats()
            assert first.settings.sampling == SamplingParams(temperature=0.5)
            assert second.settings.sampling == SamplingParams()

    asyncio.run(run())
    assert "chat 2" in caplog.text


@pytest.mark.parametrize("status", [status for status in MessageStatus if status.is_alive])
def test_replies_a_dead_program_left_alive_are_interrupted_and_keep_their_text(
    path: Path, status: MessageStatus
) -> None:
    async def run() -> None:
        async with opened(path) as store:
            chat = a_chat()
            chat.chat_id = await store.add_chat(chat)
            await store.add_messages(chat, [a_message(chat.chat_id, "so far", status)])
        async with opened(path) as store:
            (message,) = await store.load_messages(1)
            assert (message.status, message.text) == (MessageStatus.INTERRUPTED, "so far")

    asyncio.run(run())


def test_a_second_owner_is_refused_and_the_first_unharmed(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            second = HistoryStore(path)
            with pytest.raises(StoreBusy, match="another Layby"):
                await second.open()
            await second.close()
            await fill(store, 1)
        async with opened(path) as store:
            assert len(await store.load_chats()) == 1

    asyncio.run(run())


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(path: Path) -> None:
    async def make() -> None:
        async with opened(path):
            pass

    async def refuse() -> None:
        store = HistoryStore(path)
        with pytest.raises(StoreError, match="version 99"):
            await store.open()
        await store.close()

    asyncio.run(make())
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = path.read_bytes()
    asyncio.run(refuse())
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.broken*"))


def test_a_file_that_is_no_database_is_set_aside_and_a_new_one_made(path: Path) -> None:
    path.write_bytes(b"this was never a database" * 100)
    damages: list[StoreBroken] = []

    async def run() -> None:
        store = HistoryStore(path)
        store.file.replaced.connect(damages.append)
        await store.open()
        assert await store.load_chats() == []
        await fill(store, 1)
        await store.close()

    asyncio.run(run())
    aside = path.with_name("history.db.broken")
    assert aside.read_bytes() == b"this was never a database" * 100
    (damage,) = damages
    assert str(aside) in str(damage)


def test_damage_in_the_middle_costs_only_what_lies_there(path: Path) -> None:
    """Overwrite some pages of a closed history: what SQLite can still read is carried into the new file."""
    damages: list[StoreBroken] = []

    async def make() -> None:
        async with opened(path) as store:
            await fill(store, 200, text="x" * 2000)

    async def look() -> None:
        store = HistoryStore(path)
        store.file.replaced.connect(damages.append)
        await store.open()
        await store.check()
        chats = await store.load_chats()
        messages = [
            message for chat in chats for message in await store.load_messages(chat.chat_id)
        ]
        await store.close()
        assert len(chats) >= 199  # a row of the list may lie there too
        assert 600 < len(messages) < 800
        assert all(message.text.startswith("x" * 2000) for message in messages)

    asyncio.run(make())
    damaged = overwrite(path, first_page=path.stat().st_size // PAGE_BYTES // 2, num_pages=3)
    asyncio.run(look())
    assert len(damages) == 1
    assert path.with_name("history.db.broken").read_bytes() == damaged
    assert read_rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_damage_met_by_a_write_is_repaired_and_the_write_done(path: Path) -> None:
    async def make() -> None:
        async with opened(path) as store:
            await fill(store, 50, text="y" * 1000)

    async def write() -> None:
        async with opened(path) as store:
            chat = (await store.load_chats())[0]
            await store.add_messages(chat, [a_message(chat.chat_id, "after the damage")])
            assert [message.text for message in await store.load_messages(chat.chat_id)][
                -1
            ] == "after the damage"
            assert len(await store.load_chats()) == 50

    asyncio.run(make())
    ((root,),) = read_rows(
        path, "SELECT rootpage FROM sqlite_master WHERE name = 'messages_of_chat'"
    )
    overwrite(path, first_page=root - 1, num_pages=1)
    asyncio.run(write())
    assert path.with_name("history.db.broken").exists()
    assert read_rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_sound_file_passes_the_check_untold(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            damages: list[StoreBroken] = []
            store.file.replaced.connect(damages.append)
            await fill(store, 3)
            await store.check()
            assert damages == []

    asyncio.run(run())
    assert not list(path.parent.glob("*.broken*"))


def test_a_check_ends_early_when_told(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            await fill(store, 100, text="z" * 5000)
            store.end_check()
            await store.check()

    asyncio.run(run())


def test_messages_and_their_chat_are_added_together_or_not_at_all(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            chat = a_chat()
            chat.chat_id = await store.add_chat(chat)
            chat.title = "changed"
            orphan = a_message(chat.chat_id + 1, "no such chat")
            with pytest.raises(StoreError):
                await store.add_messages(chat, [a_message(chat.chat_id, "first"), orphan])
            assert await store.load_messages(chat.chat_id) == []
            assert [entry.title for entry in await store.load_chats()] == ["Lisbon"]

    asyncio.run(run())


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    async def run() -> None:
        store = HistoryStore(tmp_path / "file" / "history.db")
        with pytest.raises(StoreError, match="cannot be used"):
            await store.open()
        await store.close()

    asyncio.run(run())


def test_a_closed_history_says_so(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            pass
        with pytest.raises(StoreError, match="closed"):
            await store.load_chats()

    asyncio.run(run())


def test_the_list_of_chats_tells_how_each_last_message_stands(path: Path) -> None:
    async def run() -> None:
        async with opened(path) as store:
            for number, statuses in enumerate(
                ([], [MessageStatus.DONE, MessageStatus.FAILED], [MessageStatus.WRITING])
            ):
                chat = a_chat(updated_s=float(number))
                chat.chat_id = await store.add_chat(chat)
                messages = [a_message(chat.chat_id, "x", status) for status in statuses]
                for message in messages:
                    message.note = f"why {message.status.value}"
                await store.add_messages(chat, messages)
        async with opened(path) as store:
            chats = await store.load_chats()
            assert [chat.last_status for chat in chats] == [
                MessageStatus.INTERRUPTED,
                MessageStatus.FAILED,
                None,
            ]
            assert [chat.last_note for chat in chats] == ["", "why failed", ""]
            for chat in chats:
                chat.is_loaded = True  # what is loaded counts
                assert (chat.last_status, chat.last_note) == (None, "")

    asyncio.run(run())
