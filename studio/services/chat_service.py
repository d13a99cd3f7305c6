"""The chats: the door to all that can be done with them, and what there is to do with a chat as a whole.

GUI thread, asyncio, no Qt. What is done to the turns of a chat, to its versions, drafts, folders, presets and where it
is kept is in services of their own, which are put together here; all share one `ChatBook`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.client import EngineClient
from studio.models.chat import NEW_CHAT_TITLE, Conversation
from studio.models.chat_settings import ChatSettings
from studio.models.errors import StoreError
from studio.models.one_line import one_line
from studio.models.tool_settings import ToolSettings
from studio.models.tool_use import ChatTools
from studio.services.attachments.attachment_service import AttachmentService
from studio.services.chat_book import ChatBook
from studio.services.chat_records import ChatRecords
from studio.services.chat_saver import SAVE_INTERVAL_S, ChatSaver
from studio.services.compare_service import CompareService
from studio.services.context_service import ContextService
from studio.services.draft_service import DraftService
from studio.services.exchange.exchange_service import ExchangeService
from studio.services.folder_service import FolderService
from studio.services.history_store import HistoryStore
from studio.services.notice_service import NoticeService
from studio.services.preset_service import PresetService
from studio.services.reply_runner import ReplyRunner
from studio.services.search_service import SearchService
from studio.services.shelf_service import ShelfService
from studio.services.store_troubles import StoreTroubles
from studio.services.tools.tool_desk import ToolDesk
from studio.services.tools.tool_service import ToolService
from studio.services.turn_service import TurnService
from studio.services.version_service import VersionService

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTooling:
    """What chats use tools with."""

    service: ToolService
    settings: Callable[[], ToolSettings]


class ChatService:
    """`chats` are all that are not deleted, the last used first. For the signals see `ChatBook`.

    turns: ask, edit, ask again, go on. versions: choose, write otherwise, delete one message, branch, duplicate.
    context: how much of the window a chat takes. drafts: unsent text and files, the queued prompt. shelf: pin, archive,
    move, delete, restore. folders. presets: a chat's settings and named ones. search. attachments: files for drafts.
    exchange: export and import. desk: the user's word on calls of tools; None where there are none.
    """

    def __init__(
        self,
        client: EngineClient,
        store: HistoryStore,
        notices: NoticeService,
        *,
        clock: Callable[[], float] = time.time,
        save_interval_s: float = SAVE_INTERVAL_S,
        tools: ChatTooling | None = None,
    ) -> None:
        """`tools`: the servers whose tools chats may use, and the settings of that; None: no chat has any."""
        self.book = book = ChatBook(clock)
        self.chat_added = book.chat_added
        self.chat_removed = book.chat_removed
        self.chat_changed = book.chat_changed
        self.path_changed = book.path_changed
        self.message_added = book.message_added
        self.message_changed = book.message_changed
        self._store = store
        self._notices = notices
        self._clock = clock
        self._saver = ChatSaver(store, StoreTroubles(notices), save_interval_s)
        self._records = records = ChatRecords(store, self._saver)
        self.desk = None
        if tools is not None:
            self.desk = _make_desk(client, book, records, tools=tools, notices=notices)
        self._runner = runner = ReplyRunner(
            client, book, records, notices=notices, clock=clock, desk=self.desk
        )
        self.turns = TurnService(client, book, records, runner=runner, notices=notices, clock=clock)
        self.versions = VersionService(book, records, notices, clock=clock)
        self.context = ContextService(client, self.desk)
        self.drafts = DraftService(client, book, records, turns=self.turns, room=self.context)
        self.shelf = ShelfService(book, records, runner, clock=clock)
        self.folders = FolderService(book, records, store.lists)
        self.presets = PresetService(book, records, store.lists)
        self.search = SearchService(book, store.search)
        self.comparing = CompareService(
            book, records, self.turns, self.versions, shelf=self.shelf, presets=self.presets
        )
        self.attachments = AttachmentService(client, self.drafts, notices)
        self.exchange = ExchangeService(book, records, self.folders, clock=clock)
        self._checking: asyncio.Task[None] | None = None

    @property
    def chats(self) -> list[Conversation]:
        """All that are not deleted, archived ones too, the last used first."""
        return self.book.chats

    async def start(self) -> None:
        """Open the store, read the lists, and let the file be checked meanwhile.

        Raises StoreBusy if another Layby has it, StoreError if it cannot be read.
        """
        self._store.file.replaced.connect(self._notices.report)
        await self._store.open()
        try:
            await self._store.tidy_up()
        except StoreError as error:  # what is there can be read all the same
            self._saver.owe(self._store, self._end_alive, error)
        every = await self._store.load_chats()
        alive = (chat for chat in every if chat.deleted_s is None)
        self.book.chats = sorted(alive, key=self.book.used_s, reverse=True)
        deleted = [chat for chat in every if chat.deleted_s is not None]
        self.book.deleted = sorted(deleted, key=lambda chat: chat.deleted_s or 0.0, reverse=True)
        await self.folders.load()
        await self.presets.load()
        self._checking = asyncio.get_running_loop().create_task(self._look_after_store())

    async def new_chat(
        self,
        *,
        is_temporary: bool = False,
        folder_id: int | None = None,
        settings: ChatSettings | None = None,
    ) -> Conversation:
        """Add an empty chat at the top of the list, also while nothing can be stored.

        A temporary one is never stored: it is gone when the program ends.
        """
        now_s = self._clock()
        chat = Conversation(
            chat_id=0,
            title=NEW_CHAT_TITLE,
            created_s=now_s,
            updated_s=now_s,
            settings=settings or ChatSettings(),
            folder_id=folder_id,
            is_loaded=True,
        )
        self._records.begin_chat(chat, is_temporary=is_temporary)
        self.book.add(chat)
        return chat

    async def open_chat(self, chat_id: int) -> Conversation:
        """Read the messages of a chat (once) and take its unread mark away.

        Raises KeyError for an unknown id, StoreError if the messages cannot be read.
        """
        chat = self.book.find(chat_id)
        if chat is None:
            raise KeyError(chat_id)
        await self._records.load(chat)
        if chat.has_unread:
            chat.has_unread = False
            self._records.save_chat(chat)
            self.chat_changed.emit(chat)
        return chat

    async def send(self, chat: Conversation, text: str) -> bool:
        """Store the prompt with the files of the draft, then ask the engine; True once asked, with an empty draft.

        False, and the composer keeps its text, if there is nothing to send, the chat is still answering, or the
        prompt could not be stored (which is a notice as well).
        """
        return await self.turns.send(chat, text)

    def stop(self, chat: Conversation) -> None:
        """End the running reply, keeping its text; nothing if none is running."""
        self._runner.stop(chat)

    async def rename(self, chat: Conversation, title: str) -> None:
        """Give a chat a title; a blank one is ignored."""
        title = one_line(title)
        if title and title != chat.title:
            chat.title = title
            self._records.save_chat(chat)
            self.chat_changed.emit(chat)

    def set_tools(self, chat: Conversation, tools: ChatTools) -> None:
        """Change which tools the chat may call, from its next reply on."""
        if tools != chat.tools:
            chat.tools = tools
            self._records.save_chat(chat)
            self.chat_changed.emit(chat)

    async def delete(self, chat: Conversation) -> None:
        """Stop the chat's reply and take it out of the list; it can be brought back (`shelf`). Raises StoreError."""
        await self.shelf.delete([chat])

    def set_draft(self, chat: Conversation, text: str) -> None:
        """Keep unsent text; it is saved with the next tick."""
        self.drafts.set_draft(chat, text)

    def set_visible(self, chat: Conversation, *, is_visible: bool) -> None:
        """Say which chats are on screen: a reply that ends in another one marks that chat unread."""
        self._runner.set_visible(chat, is_visible=is_visible)

    async def close(self) -> None:
        """End all replies (as INTERRUPTED, keeping their text), save everything and close the store."""
        self.book.is_closing = True
        self._store.end_check()
        await self._runner.close()
        await self.drafts.close()
        try:
            await self._saver.close()
            if self._checking is not None:
                await self._checking
        finally:
            if self.desk is not None:
                await self.desk.service.close()
            await self._store.close()

    async def _end_alive(self) -> bool:
        await self._store.end_alive()
        return True

    async def _look_after_store(self) -> None:
        try:
            await self.shelf.purge()
        except StoreError as error:
            _log.info("what was deleted long ago stays until the next start: %s", error)
        try:
            await self._store.check()
        except StoreError as error:
            self._notices.report(error)


def _make_desk(
    client: EngineClient,
    book: ChatBook,
    records: ChatRecords,
    *,
    tools: ChatTooling,
    notices: NoticeService,
) -> ToolDesk:
    return ToolDesk(
        book,
        records,
        tools.service,
        settings=tools.settings,
        notices=notices,
        window_tokens=lambda: client.snapshot().window_tokens,
    )
