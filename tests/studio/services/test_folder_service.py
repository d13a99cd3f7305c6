"""FolderService: folders in folders, none in itself, and chats that outlive their folder."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from fakes.chat_rig import open_chats
from fakes.fake_engine import FakeEngine
from studio.models.undo import Undo


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def test_folders_and_what_is_open_outlive_a_restart_in_their_order(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            folders = rig.chats.folders
            work = await folders.new("  Work ")
            home = await folders.new("Home")
            garden = await folders.new("Garden", parent_id=home.folder_id)
            await folders.rename(garden, "The garden")
            await folders.rename(garden, "   ")
            await folders.set_open(work, is_open=False)
        async with open_chats(path) as rig:
            folders = rig.chats.folders
            assert [one.name for one in folders.inside(None)] == ["Work", "Home"]
            assert [one.is_open for one in folders.inside(None)] == [False, True]
            assert [one.name for one in folders.inside(home.folder_id)] == ["The garden"]

    asyncio.run(run())


def test_a_folder_cannot_lie_in_itself_at_any_depth(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            folders = rig.chats.folders
            a = await folders.new("a")
            b = await folders.new("b", parent_id=a.folder_id)
            c = await folders.new("c", parent_id=b.folder_id)
            for outer in (a, b, c):
                assert not await folders.move(a, outer.folder_id)
            assert not await folders.move(c, 99)
            assert await folders.move(c, None)
            assert await folders.move(a, c.folder_id)
            assert [one.name for one in folders.inside(None)] == ["c"]

    asyncio.run(run())


def test_folders_change_places_and_keep_them(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            folders = rig.chats.folders
            a, b, c = [await folders.new(name) for name in "abc"]
            inner = await folders.new("inner", parent_id=a.folder_id)
            assert await folders.place(c, a, is_after=False)
            assert await folders.place(b, c, is_after=True)
            assert not await folders.place(b, b, is_after=True)
            assert not await folders.place(a, inner, is_after=True)
            assert await folders.shift(a, -1)
            assert not await folders.shift(c, -1)
            assert await folders.place(inner, c, is_after=False)
        async with open_chats(path) as rig:
            assert [one.name for one in rig.chats.folders.inside(None)] == ["inner", "c", "a", "b"]

    asyncio.run(run())


def test_deleting_a_folder_keeps_its_chats_and_undo_puts_everything_back(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            folders, offered = rig.chats.folders, list[Undo]()
            rig.chats.book.undo_offered.connect(offered.append)
            outer = await folders.new("outer")
            middle = await folders.new("middle", parent_id=outer.folder_id)
            inner = await folders.new("inner", parent_id=middle.folder_id)
            chat, deleted = [(await rig.ask(text))[0] for text in ("one", "two")]
            rig.chats.shelf.move([chat, deleted], middle.folder_id)
            await rig.chats.delete(deleted)
            await folders.delete(middle)
            await folders.delete(middle)
            assert (chat.folder_id, inner.parent_id) == (outer.folder_id, outer.folder_id)
            assert deleted.folder_id == outer.folder_id
            await offered[-1].run()
            assert (chat.folder_id, inner.parent_id) == (middle.folder_id, middle.folder_id)
        async with open_chats(path) as rig:
            (chat,) = rig.chats.chats
            assert chat.folder_id == middle.folder_id
            assert [one.name for one in rig.chats.folders.inside(middle.folder_id)] == ["inner"]

    asyncio.run(run())


def test_chats_of_a_lost_folder_and_folders_in_a_circle_lie_at_the_top(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            chat = (await rig.ask("one"))[0]
            a = await rig.chats.folders.new("a")
            await rig.chats.folders.new("b", parent_id=a.folder_id)
            rig.chats.shelf.move([chat], a.folder_id)
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("UPDATE chats SET folder_id = 99")
        database.execute("UPDATE folders SET parent_id = 2 WHERE folder_id = 1")
        database.close()
        async with open_chats(path) as rig:
            assert rig.chats.chats[0].folder_id is None
            (top,) = rig.chats.folders.inside(None)
            assert [one.name for one in rig.chats.folders.inside(top.folder_id)] == ["b"]

    asyncio.run(run())
