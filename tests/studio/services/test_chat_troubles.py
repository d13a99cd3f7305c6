"""Chats in trouble: a full disk, a locked history, odd text, a slot that raises; what was shown as saved is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from fakes.chat_rig import open_chats, until
from studio.models.chat import NEW_CHAT_TITLE, MessageStatus


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


def test_a_full_disk_refuses_the_prompt_and_keeps_the_composers_text(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            limit = await rig.store.file.do(
                lambda database: database.execute("PRAGMA max_page_count = 1").fetchone()
            )
            assert not await rig.chats.send(chat, "x" * 100_000)
            assert rig.notice_codes == ["store_full"]
            assert (chat.messages, chat.title, rig.engine.requests) == ([], NEW_CHAT_TITLE, {})
            assert limit is not None
            await rig.store.file.do(
                lambda database: database.execute("PRAGMA max_page_count = 100000").fetchone()
            )
            assert rig.notice_codes == ["store_full"], "nobody has tried again"
            assert await rig.chats.send(chat, "x" * 100_000)
            assert rig.notice_codes == []

    asyncio.run(run())


def test_a_reply_that_could_not_be_saved_is_saved_when_there_is_room_again(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            _, reply, request_id = await rig.ask("stream")
            await rig.store.file.do(
                lambda database: database.execute("PRAGMA max_page_count = 1").fetchone()
            )
            rig.engine.start(request_id)
            rig.engine.say(request_id, "y" * 100_000)
            await until(lambda: rig.notice_codes == ["store_full"])
            assert len(reply.text) == 100_000
            await rig.store.file.do(
                lambda database: database.execute("PRAGMA max_page_count = 100000").fetchone()
            )
            await until(
                lambda: (
                    rig.rows("SELECT length(text) FROM messages WHERE role = 'assistant'")
                    == [(100_000,)]
                )
            )
            await until(lambda: rig.notice_codes == [])

    asyncio.run(run())


def test_a_history_that_another_program_locks_is_told_and_written_when_it_is_free(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            patience = "PRAGMA busy_timeout = 1"
            await rig.store.file.do(lambda database: database.execute(patience).fetchone())
            chat, reply, request_id = await rig.ask("stream")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "while it was locked")
            await until(lambda: rig.notice_codes == ["store_failed"])
            (notice,) = rig.notices.notices.notices
            assert "another program has locked" in notice.detail
            assert (chat.running_message, reply.text) == (reply, "while it was locked")
            other.execute("ROLLBACK")
            other.close()
            await until(
                lambda: (
                    rig.rows("SELECT text FROM messages WHERE role = 'assistant'")
                    == [("while it was locked",)]
                )
            )
            await until(lambda: rig.notice_codes == [])

    asyncio.run(run())


def test_a_prompt_that_a_lock_keeps_off_the_disk_is_not_sent(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            patience = "PRAGMA busy_timeout = 1"
            await rig.store.file.do(lambda database: database.execute(patience).fetchone())
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            assert not await rig.chats.send(chat, "keep me in the composer")
            assert (chat.messages, rig.engine.requests) == ([], {})
            other.execute("ROLLBACK")
            other.close()
            assert await rig.chats.send(chat, "keep me in the composer")

    asyncio.run(run())


def test_a_new_chat_is_there_while_nothing_can_be_stored_and_is_stored_when_it_can(
    path: Path,
) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            first = await rig.chats.new_chat()
            async with rig.read_only():
                chat, other = await rig.chats.new_chat(), await rig.chats.new_chat()
                assert rig.chats.chats == [other, chat, first]
                rig.chats.set_draft(chat, "kept")
                await until(lambda: rig.notice_codes == ["store_failed"])
                assert not await rig.chats.send(other, "not yet")
            assert await rig.chats.send(other, "now")
            await until(lambda: rig.notice_codes == [])
            assert await rig.chats.versions.duplicate(other) is not None
            assert rig.rows("SELECT chat_id, draft FROM chats") == [
                (first.chat_id, ""),
                (chat.chat_id, "kept"),
                (other.chat_id, ""),
                (other.chat_id + 1, ""),
            ]
            await rig.chats.shelf.delete_for_good([rig.chats.chats[0]])
        async with open_chats(path) as rig:
            later = await rig.chats.new_chat()
            assert later.chat_id == other.chat_id + 2, "no id is given twice"

    asyncio.run(run())


def test_opening_an_unknown_chat_is_an_error_of_the_caller(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            with pytest.raises(KeyError):
                await rig.chats.open_chat(99)

    asyncio.run(run())


def test_nothing_is_sent_or_stored_after_closing(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
        assert not await rig.chats.send(chat, "too late")
        assert rig.engine.requests == {}

    asyncio.run(run())


def test_half_a_surrogate_pair_harms_neither_history_nor_engine(path: Path) -> None:
    async def run() -> None:
        async with open_chats(path) as rig:
            chat = await rig.chats.new_chat()
            rig.chats.set_draft(chat, "draft \ud83d")
            _, _, request_id = await rig.ask("beach \ud83d here", chat)
            (turn,) = rig.engine.requests[request_id].prompt.messages
            assert turn.content == "beach ? here"
            other = await rig.chats.new_chat()
            rig.chats.set_draft(other, "draft \ud83d")
            await until(
                lambda: rig.rows("SELECT draft FROM chats WHERE draft != ''") == [("draft ?",)]
            )

    asyncio.run(run())


def test_a_slot_that_raises_ends_its_own_reply_only(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_message: object) -> None:
        if not failures:
            failures.append(1)
            raise RuntimeError("a view's mistake")

    failures: list[int] = []

    async def run() -> None:
        async with open_chats(path) as rig:
            _, reply, request_id = await rig.ask("first")
            _, other, other_id = await rig.ask("second")
            rig.chats.message_changed.connect(broken)
            rig.engine.start(request_id)
            await until(lambda: reply.status is MessageStatus.FAILED)
            assert reply.note == "the log has the particulars"
            rig.engine.start(other_id)
            rig.engine.say(other_id, "fine")
            rig.engine.finish(other_id)
            await until(lambda: other.status is MessageStatus.DONE)

    asyncio.run(run())
    assert "a view's mistake" in caplog.text


def test_a_history_that_is_locked_at_the_start_can_be_read_and_is_tidied_up_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = partial(sqlite3.connect, timeout=0.0)

    async def run() -> None:
        async with open_chats(path) as rig:
            _, reply, request_id = await rig.ask("Where is the key?")
            rig.engine.start(request_id)
            rig.engine.say(request_id, "Under the m")
            await until(lambda: reply.text)
        with closing(impatient(path, isolation_level=None)) as other:
            other.execute("UPDATE messages SET status = 'writing' WHERE role = 'assistant'")
            other.execute("BEGIN IMMEDIATE")
            monkeypatch.setattr("studio.services.history_schema.sqlite3.connect", impatient)
            async with open_chats(path) as rig:
                (chat,) = rig.chats.chats
                await rig.chats.open_chat(chat.chat_id)
                assert chat.messages[-1].status is MessageStatus.INTERRUPTED
                (notice,) = rig.notices.notices.notices
                assert "another program has locked" in notice.detail
                assert notice.detail.endswith("; Layby tries again by itself")
                other.execute("ROLLBACK")
                await until(lambda: rig.notice_codes == [])
                assert rig.rows("SELECT status FROM messages")[-1] == ("interrupted",)

    asyncio.run(run())
