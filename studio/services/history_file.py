"""The history's file (SQLite, WAL): its one owner, its one worker thread, and what happens when it is damaged.

Work is done in the order it was handed in. Only one process may have a history open. No Qt.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from engine.file_lock import FileLock
from studio.models.errors import StoreBusy, StoreError
from studio.models.signal import Signal
from studio.services.history_errors import as_store_errors
from studio.services.history_place import FileId, file_id, put_back
from studio.services.history_repair import DamageFound, check_integrity, is_damage, rebuild
from studio.services.history_schema import open_database

_T = TypeVar("_T")

_STEPS_BETWEEN_LOOKS = 10_000
"""SQLite's virtual machine steps between two looks whether the check shall end; some milliseconds."""


class HistoryFile:
    """`do` hands work to the worker; what it returns has been committed, what raises StoreError has changed nothing."""

    def __init__(self, path: Path) -> None:
        self.replaced: Signal[[StoreError]] = Signal()
        """The file was found damaged, set aside, and replaced by what could be read of it; or it was gone from its
        place, and has been put back."""
        self.path = path
        self._lock = _lock_of(path)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="layby-history")
        self._connection: sqlite3.Connection | None = None
        self._news: StoreError | None = None
        """What `replaced` has still to tell."""
        self._file_id: FileId | None = None
        """Of what the connection is to."""
        self._check_ended = threading.Event()
        self._is_closed = False

    async def take(self) -> None:
        """Become the one owner. Raises StoreBusy if another process is."""
        await self._in_worker(self._take_lock)

    async def check(self) -> None:
        """Let SQLite check the whole file; damage is repaired as far as possible and told by `replaced`."""
        await self.do(self._check)

    def end_check(self) -> None:
        """Let a `check` that is running or still to come return at once, having found nothing."""
        self._check_ended.set()

    async def close(self) -> None:
        """Close the file and end the worker thread, also after a failed `take`."""
        self.end_check()
        closing = self._in_worker(self._close)
        self._is_closed = True  # nothing is handed in behind it, which would open the file again
        try:
            await closing
        finally:
            self._worker.shutdown(wait=True)

    async def do(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Let the worker do it, on a rebuilt file if the file turns out to be damaged. Raises StoreError."""
        try:
            return await self._in_worker(lambda: self._attempt(work))
        finally:
            news, self._news = self._news, None
            if news is not None:
                self.replaced.emit(news)

    def _in_worker(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        if self._is_closed:
            raise StoreError(f"the chat history {self.path} is closed; start Layby again")
        return asyncio.get_running_loop().run_in_executor(self._worker, work)

    # in the worker thread

    def _attempt(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do the work, on a file put back if it has gone, on a rebuilt one if it turns out to be damaged."""
        with as_store_errors(self.path):
            try:
                if self._connection is not None and file_id(self.path) != self._file_id:
                    self._news = put_back(self.path, self._connection)
                    self._connection = None
                return work(self._opened())
            except (sqlite3.Error, DamageFound) as error:
                if not is_damage(error):
                    raise
            damaged, self._connection = self._connection, None
            self._connection, self._news = rebuild(self.path, damaged)
            self._file_id = file_id(self.path)
            return work(self._connection)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_database(self.path)
            self._file_id = file_id(self.path)
        return self._connection

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
        with as_store_errors(self.path):
            if not self._lock.acquire():
                raise StoreBusy(
                    f"the chat history {self.path} is open in another Layby; use that window, or close it first"
                )

    def _close(self) -> None:
        with as_store_errors(self.path):
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._lock.release()


def is_free(path: Path) -> bool:
    """Whether no process has the history at `path` open, or it cannot be told."""
    lock = _lock_of(path)
    try:
        was_free = lock.acquire()
    except OSError:
        return True
    lock.release()
    return was_free


def _lock_of(path: Path) -> FileLock:
    return FileLock(path.with_name(path.name + ".lock"))


def insert(database: sqlite3.Connection, statement: str, row: tuple[object, ...]) -> int:
    """Insert one row, or put it; its id."""
    new_id = database.execute(statement, row).lastrowid
    assert new_id is not None
    return new_id


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; nothing also when the commit itself fails, as on a full disk."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    finally:
        if database.in_transaction:
            database.execute("ROLLBACK")
