"""ShelfService: deleting with a way back, archive, pins, and temporary chats that leave no trace."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from engine.client import EngineClient
from fakes.chat_rig import ChatRig, open_chats, read_rows, until
from fakes.fake_engine import FakeEngine
from studio.models.attachment import Attachment, AttachmentKind
from studio.models.chat import Conversation, MessageStatus
from studio.models.undo import Undo, UndoKind
from studio.services.chat_service import ChatService
from studio.services.history_store import HistoryStore
from studio.services.notice_service import NoticeService
from studio.services.shelf_service import DELETED_KEPT_S


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def undos(rig: ChatRig) -> list[Undo]:
    offered: list[Undo] = []
    rig.chats.book.undo_offered.connect(offered.append)
    return offered


def test_deleting_frees_the_reply_at_once_and_undo_brings_back_the_text_so_far(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            offered = undos(rig)
            older = (await rig.ask("older"))[0]
            chat, reply, request_id = await rig.ask("secret")
            removed: list[Conversation] = []
            rig.chats.chat_removed.connect(removed.append)
            rig.engine.start(request_id)
            rig.engine.say(request_id, "so far")
            await until(lambda: reply.text)
            newer = (await rig.ask("newer"))[0]
            await rig.chats.delete(chat)
            assert (rig.chats.chats, removed) == ([newer, older], [chat])
            await until(lambda: request_id in rig.engine.aborted)
            rig.chats.set_draft(chat, "late")
            (undo,) = offered
            assert (undo.kind, undo.number, undo.name) == (UndoKind.CHATS_DELETED, 1, "secret")
            await undo.run()
            assert rig.chats.chats == [newer, chat, older]
            assert (reply.text, reply.status) == ("so far", MessageStatus.STOPPED)
            assert rig.chats.turns.can_continue(chat)
        async with open_chats(path) as rig:
            assert [chat.title for chat in rig.chats.chats] == ["newer", "secret", "older"]

    asyncio.run(run())


def test_a_deleted_chat_is_out_of_sight_after_a_restart_but_can_be_brought_back(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            chat, reply, _ = await rig.ask("leeks and potatoes")
            await until(lambda: not reply.status.is_alive)
            await rig.chats.delete(chat)
            assert rig.rows("SELECT deleted_s IS NOT NULL FROM chats") == [(1,)]
        async with open_chats(path) as rig:
            assert rig.chats.chats == []
            assert await rig.chats.search.find("leeks") == []
            (chat,) = rig.chats.book.deleted
            await rig.chats.shelf.restore([chat])
            assert rig.chats.chats == [chat]
            await rig.chats.open_chat(chat.chat_id)
            assert chat.messages[0].text == "leeks and potatoes"

    asyncio.run(run())


def test_what_was_deleted_long_ago_is_gone_for_good_with_all_that_belonged_to_it(
    path: Path,
) -> None:
    now_s = 1_000.0

    async def opened() -> tuple[ChatService, EngineClient]:
        client = EngineClient(FakeEngine(auto=False), asyncio.get_running_loop())
        chats = ChatService(client, HistoryStore(path), NoticeService(), clock=lambda: now_s)
        await chats.start()
        return chats, client

    async def run() -> None:
        nonlocal now_s
        chats, client = await opened()
        for text in ("old secret", "new secret"):
            chat = await chats.new_chat()
            note = Attachment(name="note", kind=AttachmentKind.TEXT, text=text)
            await chats.drafts.attach(chat, note)
            await chats.send(chat, text)
            await chats.delete(chat)
            now_s += DELETED_KEPT_S / 2 + 1
        await chats.close()
        client.close()
        chats, client = await opened()
        await until(lambda: len(chats.book.deleted) == 1)
        assert chats.book.deleted[0].title == "new secret"
        await chats.close()
        client.close()

    asyncio.run(run())
    assert read_rows(path, "SELECT title FROM chats") == [("new secret",)]
    assert read_rows(path, "SELECT count(*) FROM messages") == [(2,)]
    assert read_rows(path, "SELECT count(*) FROM attachments") == [(1,)]
    words = "SELECT count(*) FROM message_words WHERE message_words MATCH 'old'"
    assert read_rows(path, words) == [(0,)]


def test_deleting_for_good_leaves_nothing(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            first, second = [(await rig.ask(text))[0] for text in ("one", "two")]
            await rig.chats.delete(first)
            await rig.chats.shelf.delete_for_good([first, second])
            assert (rig.chats.chats, rig.chats.book.deleted) == ([], [])
            rig.chats.set_draft(second, "late")
        assert read_rows(path, "SELECT * FROM chats") == []
        assert read_rows(path, "SELECT * FROM messages") == []

    asyncio.run(run())


def test_several_chats_are_pinned_archived_and_moved_at_once_and_it_outlives_a_restart(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            offered = undos(rig)
            chats = [(await rig.ask(text))[0] for text in ("one", "two", "three")]
            folder = await rig.chats.folders.new("Work")
            shelf = rig.chats.shelf
            shelf.pin(chats[:2], is_pinned=True)
            shelf.archive(chats[1:])
            shelf.move(chats, folder.folder_id)
            assert [undo.kind for undo in offered] == [
                UndoKind.CHATS_ARCHIVED,
                UndoKind.CHATS_MOVED,
            ]
            shelf.move(chats, folder.folder_id)
            assert len(offered) == 2
        async with open_chats(path) as rig:
            marks = [(c.title, c.is_pinned, c.is_archived, c.folder_id) for c in rig.chats.chats]
            assert marks == [
                ("three", False, True, folder.folder_id),
                ("two", True, True, folder.folder_id),
                ("one", True, False, folder.folder_id),
            ]

    asyncio.run(run())


def test_undo_puts_moved_and_archived_chats_back_where_each_was(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path, FakeEngine()) as rig:
            offered = undos(rig)
            one, two = [(await rig.ask(text))[0] for text in ("one", "two")]
            work = await rig.chats.folders.new("Work")
            rig.chats.shelf.move([one], work.folder_id)
            rig.chats.shelf.move([one, two], None)
            await offered[-1].run()
            assert (one.folder_id, two.folder_id) == (work.folder_id, None)
            rig.chats.shelf.move([one, two], work.folder_id)
            await offered[-1].run()
            assert (one.folder_id, two.folder_id) == (work.folder_id, None)
            rig.chats.shelf.archive([one, two])
            await offered[-1].run()
            assert [one.is_archived, two.is_archived] == [False, False]

    asyncio.run(run())


def test_a_temporary_chat_leaves_no_trace_on_the_disk(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat(is_temporary=True)
            note = Attachment(name="n", kind=AttachmentKind.TEXT, text="xyzzy-file")
            await rig.chats.drafts.attach(chat, note)
            _, reply, request_id = await rig.ask("xyzzy-prompt", chat)
            assert not rig.engine.requests[request_id].is_durable
            await rig.chats.drafts.queue(chat, "xyzzy-queued")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "xyzzy-reply")
            rig.engine.finish(request_id)
            await until(lambda: len(rig.engine.requests) == 2)
            rig.chats.stop(chat)
            rig.chats.set_draft(chat, "xyzzy-draft")
            await rig.chats.rename(chat, "xyzzy-title")
            assert await rig.chats.turns.edit_prompt(chat, chat.messages[0], "xyzzy-edited")
            rig.chats.stop(chat)
            assert await rig.chats.versions.delete_message(chat, chat.messages[-1])
            branch = await rig.chats.versions.branch(chat, chat.messages[-1])
            assert branch is not None
            assert branch.is_temporary
            await rig.chats.delete(branch)
            assert reply.text == "xyzzy-reply"
            kept = (await rig.ask("plugh"))[0]
            assert not kept.is_temporary
        async with open_chats(path) as rig:
            assert [chat.title for chat in rig.chats.chats] == ["plugh"]

    asyncio.run(run())
    everything = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"plugh" in everything
    assert b"xyzzy" not in everything
