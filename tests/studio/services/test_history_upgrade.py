"""A history of version 1, as that version wrote it, is brought up to date with nothing lost; a damaged one too."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest

from engine.api import SamplingParams
from fakes.chat_rig import open_chats, read_rows
from studio.models.chat import Message, MessageStatus
from studio.models.errors import StoreBroken, StoreError
from studio.services import history_schema
from studio.services.history_store import HistoryStore

OLD_FILE = Path(__file__).parent / "files" / "history-v1.db"
"""Written by version 1: three chats, one of them with a reply that was being written when the program was killed."""
PAGE_BYTES = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD_FILE, tmp_path / "history.db"))


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


def test_everything_of_an_old_file_is_there(path: Path) -> None:
    before = read_rows(path, "SELECT message_id, chat_id, role, text, created_s FROM messages")

    async def run() -> None:
        async with open_chats(path) as rig:
            recipes, lisbon, empty = rig.chats.chats
            assert [chat.title for chat in rig.chats.chats] == [
                *("Recipes", "Lisbon", "Empty but named")
            ]
            assert (recipes.has_unread, lisbon.draft) == (True, "And the food?")
            assert lisbon.settings.system_prompt == "Be brief."
            assert lisbon.settings.sampling == SamplingParams(temperature=0.2, seed=7)
            assert lisbon.settings.max_tokens == 256
            assert recipes.last_status is MessageStatus.INTERRUPTED
            assert empty.last_status is None
            await rig.chats.open_chat(lisbon.chat_id)
            assert texts(lisbon.messages) == [
                "Plan three days in Lisbon, bitte schön 🏖",
                "Day one: the Alfama.\n\n```python\nprint('olá')\n```",
                *("And day two?", "", "Still there?", "Yes."),
            ]
            assert lisbon.messages[1].stats.parked_s == 2.0
            assert lisbon.messages[3].note == "the pool was full"
            assert all(len(lisbon.versions_of(message)) == 1 for message in lisbon.messages)
            found = await rig.chats.search.find("alfama")
            assert [one.chat for one in found] == [lisbon]
            assert [one.chat for one in await rig.chats.search.find("leeks")] == [recipes]

    asyncio.run(run())
    assert (
        read_rows(path, "SELECT message_id, chat_id, role, text, created_s FROM messages") == before
    )
    assert read_rows(path, "PRAGMA integrity_check") == [("ok",)]


def test_an_upgrade_that_fails_leaves_the_old_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *_ = history_schema.MIGRATIONS
    monkeypatch.setattr(history_schema, "MIGRATIONS", (first, f"{second}; INSERT INTO nothing;"))
    before = read_rows(path, "SELECT * FROM messages")

    async def run() -> None:
        store = HistoryStore(path)
        with pytest.raises(StoreError):
            await store.open()
        await store.close()

    asyncio.run(run())
    assert read_rows(path, "SELECT * FROM messages") == before
    assert read_rows(path, "PRAGMA user_version") == [(1,)]


def test_what_can_be_read_of_a_damaged_old_file_is_carried_over(path: Path) -> None:
    """Its index is overwritten, so that it cannot be brought up to date where it lies."""
    database = sqlite3.connect(path)
    ((root,),) = database.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'messages_of_chat'"
    ).fetchall()
    database.close()
    data = bytearray(path.read_bytes())
    data[(root - 1) * PAGE_BYTES : root * PAGE_BYTES] = b"\xa5" * PAGE_BYTES
    path.write_bytes(data)
    damages: list[StoreBroken] = []

    async def run() -> None:
        store = HistoryStore(path)
        store.file.replaced.connect(damages.append)
        await store.open()
        chats = await store.load_chats()
        assert [chat.title for chat in chats] == ["Recipes", "Lisbon", "Empty but named"]
        messages = await store.load_messages(chats[1].chat_id)
        assert len(messages) == 6
        parents = [message.parent_id for message in messages]
        assert parents == [None, *(message.message_id for message in messages[:-1])]
        await store.close()

    asyncio.run(run())
    assert len(damages) == 1
