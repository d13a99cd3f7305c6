"""A history that is moved away, or replaced, while it is open: nothing that was saved is lost, and it is told."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fakes.chat_rig import read_rows
from studio.models.chat import Conversation, Message, Role
from studio.models.errors import StoreError, StoreMoved
from studio.services.history_store import HistoryStore

COMPANIONS = ("", "-wal", "-shm")


def remove(path: Path) -> None:
    path.unlink()


def remove_all(path: Path) -> None:
    for suffix in COMPANIONS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def remove_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace(path: Path) -> None:
    fresh = path.with_name("theirs")
    fresh.write_bytes(b"theirs")
    fresh.replace(path)


WAYS = (remove, remove_all, remove_folder, replace)


async def add(store: HistoryStore, text: str) -> None:
    chat = Conversation(chat_id=0, title=text, created_s=1.0, updated_s=2.0)
    chat.chat_id = await store.add_chat(chat)
    await store.add_messages(chat, [Message(0, chat.chat_id, Role.USER, text, 3.0)])


def texts(path: Path) -> list[str]:
    return [text for (text,) in read_rows(path, "SELECT text FROM messages ORDER BY message_id")]


@pytest.mark.parametrize("way", WAYS)
def test_it_is_put_back_with_all_that_was_saved_before_and_since(
    tmp_path: Path, way: Callable[[Path], None]
) -> None:
    path, told = tmp_path / "data" / "history.db", list[StoreError]()

    async def run() -> None:
        store = HistoryStore(path)
        store.file.replaced.connect(told.append)
        await store.open()
        await add(store, "before")
        way(path)
        await add(store, "since")
        way(path)
        await add(store, "again")
        await store.close()

    asyncio.run(run())
    assert texts(path) == ["before", "since", "again"]
    assert read_rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert [type(one) for one in told] == [StoreMoved] * 2
    assert str(path) in str(told[0])
    others = sorted(one for one in path.parent.iterdir() if ".other" in one.name)
    assert [one.read_bytes() for one in others] == ([b"theirs"] * 2 if way is replace else [])


def test_where_it_cannot_come_back_it_does_as_soon_as_it_can(tmp_path: Path) -> None:
    path, told = tmp_path / "data" / "history.db", list[StoreError]()

    async def run() -> None:
        store = HistoryStore(path)
        store.file.replaced.connect(told.append)
        await store.open()
        await add(store, "before")
        shutil.rmtree(path.parent)
        path.parent.write_text("a file where the folder was")
        with pytest.raises(StoreError):
            await add(store, "lost")
        path.parent.unlink()
        await add(store, "since")
        await store.close()

    asyncio.run(run())
    assert texts(path) == ["before", "since"]
    assert len(told) == 1
