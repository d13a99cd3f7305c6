"""What is marked is written in the end, whoever stops waiting for it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from fakes.chat_rig import read_rows
from studio.models.chat import Conversation, Message, MessageStatus, Role
from studio.services.chat_saver import ChatSaver
from studio.services.history_store import HistoryStore
from studio.services.notice_service import NoticeService
from studio.services.store_troubles import StoreTroubles


@pytest.mark.parametrize("is_under_way", [True, False])
def test_a_flush_that_is_given_up_is_made_up_for(tmp_path: Path, is_under_way: bool) -> None:
    path, go_on = tmp_path / "history.db", threading.Event()

    async def run() -> None:
        store = HistoryStore(path)
        await store.open()
        chat = Conversation(chat_id=0, title="A", created_s=1.0, updated_s=2.0)
        chat.chat_id = await store.add_chat(chat)
        message = Message(0, chat.chat_id, Role.ASSISTANT, "", 3.0, MessageStatus.WRITING)
        (message.message_id,) = await store.add_messages(chat, [message])
        saver = ChatSaver(store, StoreTroubles(NoticeService()), 3600.0)
        held = asyncio.ensure_future(store.file.do(lambda _database: go_on.wait()))
        if not is_under_way:  # others wait before it in the worker's line
            asyncio.ensure_future(store.file.do(lambda _database: go_on.wait()))  # noqa: RUF006
        message.text, message.status = "whole", MessageStatus.TOOLS
        saver.save_message(chat, message)
        flushing = asyncio.ensure_future(saver.flush())
        await asyncio.sleep(0)
        flushing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flushing
        go_on.set()
        await held
        await saver.close()
        await store.close()

    asyncio.run(run())
    assert read_rows(path, "SELECT text, status FROM messages") == [("whole", "tools")]
