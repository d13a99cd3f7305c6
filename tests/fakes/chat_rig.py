"""A whole chat side without window and model: scripted engine, client, store and services on one asyncio loop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.client import EngineClient
from fakes.fake_engine import FakeEngine
from fakes.patience import until
from studio.models.chat import Conversation, Message
from studio.services.chat_service import ChatService, ChatTooling
from studio.services.history_store import HistoryStore
from studio.services.notice_service import NoticeService


@dataclass(slots=True)
class ChatRig:
    engine: FakeEngine
    store: HistoryStore
    notices: NoticeService
    chats: ChatService
    path: Path

    @property
    def notice_codes(self) -> list[str]:
        return [notice.code for notice in self.notices.notices.notices]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What is committed, read the way another program would."""
        return read_rows(self.path, query)

    @asynccontextmanager
    async def read_only(self) -> AsyncIterator[None]:
        """Meanwhile nothing can be written, as on a full disk; what is there can be read."""
        await read_only(self.store, is_on=True)
        yield
        await read_only(self.store, is_on=False)

    async def ask(
        self, text: str, chat: Conversation | None = None
    ) -> tuple[Conversation, Message, str]:
        """Send a prompt; the chat, its reply and the id of the request, once the engine has it."""
        chat = chat or await self.chats.new_chat()
        assert await self.chats.send(chat, text)
        reply = chat.messages[-1]
        request_id = f"chat-{chat.chat_id}-{reply.message_id}"
        await until(lambda: request_id in self.engine.requests)
        return chat, reply, request_id


async def read_only(store: HistoryStore, *, is_on: bool) -> None:
    """Have SQLite refuse every change, or take them again."""
    await store.file.do(
        lambda database: database.execute(f"PRAGMA query_only = {int(is_on)}").fetchone()
    )


def read_rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@asynccontextmanager
async def open_chats(
    path: Path,
    engine: FakeEngine | None = None,
    *,
    save_interval_s: float = 0.01,
    tools: ChatTooling | None = None,
) -> AsyncIterator[ChatRig]:
    """Services over the history at `path`, started and closed."""
    engine = engine or FakeEngine(auto=False)
    client = EngineClient(engine, asyncio.get_running_loop())
    store, notices = HistoryStore(path), NoticeService()
    chats = ChatService(client, store, notices, save_interval_s=save_interval_s, tools=tools)
    try:
        await chats.start()
        yield ChatRig(engine, store, notices, chats, path)
    finally:
        await chats.close()
        client.close()
