"""The chat history on disk (SQLite, WAL): asynchronous methods, all SQL in one worker thread of its own.

Methods are called on one asyncio loop and run in the order they were called. Only one process may have a history open.
A method that returns has committed to the disk; one that raises StoreError has changed nothing. No Qt.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from engine.file_lock import FileLock
from studio.models.chat import NEW_CHAT_TITLE, Conversation, Message, MessageStatus
from studio.models.errors import StoreBroken, StoreBusy, StoreError, StoreFull
from studio.models.signal import Signal
from studio.services.history_repair import DamageFound, check_integrity, is_damage, rebuild
from studio.services.history_rows import (
    CHAT_COLUMNS,
    LAST_STATUS,
    MESSAGE_COLUMNS,
    chat_from_row,
    chat_row,
    message_from_row,
    message_row,
)
from studio.services.history_schema import open_database

_T = TypeVar("_T")

_STEPS_BETWEEN_LOOKS = 10_000
"""SQLite's virtual machine steps between two looks whether the check shall end; some milliseconds."""


def _put(table: str, columns: str) -> str:
    """The statement that inserts a row, or updates the one with the same first column."""
    names = columns.split(", ")
    marks = ", ".join("?" for _ in names)
    changes = ", ".join(f"{name} = excluded.{name}" for name in names[1:])
    return f"INSERT INTO {table} ({columns}) VALUES ({marks}) ON CONFLICT ({names[0]}) DO UPDATE SET {changes}"


_PUT_CHAT = _put("chats", CHAT_COLUMNS)
_PUT_MESSAGE = _put("messages", MESSAGE_COLUMNS)
_END_ALIVE = (
    f"UPDATE messages SET status = '{MessageStatus.INTERRUPTED.value}', note = '' WHERE status IN "
    f"({', '.join(repr(status.value) for status in MessageStatus if status.is_alive)})"
)
_DELETE_UNTOUCHED = (
    "DELETE FROM chats WHERE title = ? AND draft = '' AND system_prompt = '' "
    "AND chat_id NOT IN (SELECT chat_id FROM messages)"
)


class HistoryStore:
    """Everything that must outlive the program. `open` before, `close` after everything else."""

    def __init__(self, path: Path) -> None:
        self.damaged: Signal[[StoreBroken]] = Signal()
        """The file was found damaged, set aside, and replaced by what could be read of it."""
        self._path = path
        self._lock = FileLock(path.with_name(path.name + ".lock"))
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="layby-history")
        self._connection: sqlite3.Connection | None = None
        self._check_ended = threading.Event()
        self._is_closed = False

    async def open(self) -> None:
        """Open the file, or make it; replies that a dead program left alive become INTERRUPTED, keeping their text.

        Raises StoreBusy if another process has it open, StoreError if it cannot be used.
        """
        await self._in_worker(self._take_lock)
        await self._do(_tidy_up)

    async def check(self) -> None:
        """Let SQLite check the whole file; damage is repaired as far as possible and told by `damaged`."""
        await self._do(self._check)

    def end_check(self) -> None:
        """Let a `check` that is running or still to come return at once, having found nothing."""
        self._check_ended.set()

    async def close(self) -> None:
        """Close the file and end the worker thread, also after a failed `open`."""
        self.end_check()
        try:
            await self._in_worker(self._close)
        finally:
            self._is_closed = True
            self._worker.shutdown(wait=True)

    async def load_chats(self) -> list[Conversation]:
        """All chats without their messages but with the status of the last one, the last used first."""
        query = (
            f"SELECT {CHAT_COLUMNS}, {LAST_STATUS} FROM chats ORDER BY updated_s DESC, chat_id DESC"
        )
        rows = await self._do(lambda database: database.execute(query).fetchall())
        return [chat_from_row(row) for row in rows]

    async def load_messages(self, chat_id: int) -> list[Message]:
        """The messages of a chat, in order."""
        query = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE chat_id = ? ORDER BY message_id"
        rows = await self._do(lambda database: database.execute(query, (chat_id,)).fetchall())
        return [message_from_row(row) for row in rows]

    async def add_chat(self, chat: Conversation) -> int:
        """Store a new chat; returns the id it got."""
        row = (None, *chat_row(chat)[1:])
        return await self._do(lambda database: _insert(database, _PUT_CHAT, row))

    async def add_messages(self, chat: Conversation, messages: Sequence[Message]) -> list[int]:
        """Store new messages together with their chat's row, all or none; returns their ids."""
        changed_chat = chat_row(chat)
        rows = [(None, *message_row(message)[1:]) for message in messages]

        def add(database: sqlite3.Connection) -> list[int]:
            with _transaction(database):
                database.execute(_PUT_CHAT, changed_chat)
                return [_insert(database, _PUT_MESSAGE, row) for row in rows]

        return await self._do(add)

    async def save(self, chats: Sequence[Conversation], messages: Sequence[Message]) -> None:
        """Store chats and messages as they are at the call, all or none."""
        chat_rows = [chat_row(chat) for chat in chats]
        message_rows = [message_row(message) for message in messages]

        def put(database: sqlite3.Connection) -> None:
            with _transaction(database):
                database.executemany(_PUT_CHAT, chat_rows)
                database.executemany(_PUT_MESSAGE, message_rows)

        await self._do(put)

    async def delete_chat(self, chat_id: int) -> None:
        """Delete a chat with its messages; an unknown id is fine."""
        statement = "DELETE FROM chats WHERE chat_id = ?"
        await self._do(lambda database: database.execute(statement, (chat_id,)).rowcount)

    async def _do(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        result, damage = await self._in_worker(lambda: self._attempt(work))
        if damage is not None:
            self.damaged.emit(damage)
        return result

    async def _in_worker(self, work: Callable[[], _T]) -> _T:
        if self._is_closed:
            raise StoreError(f"the chat history {self._path} is closed; start Layby again")
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    # in the worker thread

    def _attempt(self, work: Callable[[sqlite3.Connection], _T]) -> tuple[_T, StoreBroken | None]:
        """Do the work, on a rebuilt file if the file turns out to be damaged."""
        with _as_store_errors(self._path):
            try:
                if self._connection is None:
                    self._connection = open_database(self._path)
                return work(self._connection), None
            except (sqlite3.Error, DamageFound) as error:
                if not is_damage(error):
                    raise
            damaged, self._connection = self._connection, None
            self._connection, damage = rebuild(self._path, damaged)
            return work(self._connection), damage

    def _check(self, database: sqlite3.Connection) -> None:
        database.set_progress_handler(self._check_ended.is_set, _STEPS_BETWEEN_LOOKS)
        try:
            check_integrity(database)
        except sqlite3.OperationalError:
            if not self._check_ended.is_set():
                raise
        finally:
            database.set_progress_handler(None, 0)

    def _take_lock(self) -> None:
        with _as_store_errors(self._path):
            if not self._lock.acquire():
                raise StoreBusy(
                    f"the chat history {self._path} is open in another Layby; use that window, or close it first"
                )

    def _close(self) -> None:
        with _as_store_errors(self._path):
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._lock.release()


def _tidy_up(database: sqlite3.Connection) -> None:
    with _transaction(database):
        database.execute(_END_ALIVE)
        database.execute(_DELETE_UNTOUCHED, (NEW_CHAT_TITLE,))


def _insert(database: sqlite3.Connection, statement: str, row: tuple[object, ...]) -> int:
    new_id = database.execute(statement, row).lastrowid
    assert new_id is not None
    return new_id


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; nothing also when the commit itself fails, as on a full disk."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")


@contextmanager
def _as_store_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(f"the chat history {path} cannot be used: {error.strerror}") from error
    except sqlite3.Error as error:
        code = (
            error.sqlite_errorcode & 0xFF
            if hasattr(error, "sqlite_errorcode")
            else sqlite3.SQLITE_ERROR
        )
        if code == sqlite3.SQLITE_FULL:
            raise StoreFull(
                f"there is no room left for the chat history {path}; make room, Layby tries again by itself"
            ) from error
        raise StoreError(f"the chat history {path} cannot be used: {error}") from error
