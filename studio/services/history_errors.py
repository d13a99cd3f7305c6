"""What SQLite and the system say of the history's file, as errors whose words lead on. Any thread; no Qt."""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.errors import StoreError, StoreFull

_log = logging.getLogger(__name__)

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_LOCKED = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_UNWRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_OF_THE_DISK = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
"""Why is not told: a full disk says so only where SQLite was writing, not where it makes a file larger beforehand."""
_IOERR_NOMEM = sqlite3.SQLITE_IOERR | (12 << 8)
_MOST_ADDED_BYTES = 1 << 16
"""More than SQLite makes a file larger at once, but for what is written."""


@contextmanager
def as_store_errors(path: Path) -> Iterator[None]:
    """Let what goes wrong with the history at `path` be a StoreError; of a full disk, StoreFull."""
    try:
        yield
    except OSError as error:
        raise _of_system(path, error) from error
    except sqlite3.Error as error:
        raise _of_sqlite(path, error) from error


def is_of_the_disk(error: sqlite3.Error) -> bool:
    """Whether the disk did not let SQLite read, write or make a file."""
    return primary_code(error) in (*_OF_THE_DISK, sqlite3.SQLITE_FULL)


def primary_code(error: sqlite3.Error) -> int:
    """What kind of error it is; SQLITE_ERROR for one of the sqlite3 module itself."""
    return _code(error) & 0xFF


def _code(error: sqlite3.Error) -> int:
    return error.sqlite_errorcode if hasattr(error, "sqlite_errorcode") else sqlite3.SQLITE_ERROR


def _of_system(path: Path, error: OSError) -> StoreError:
    if error.errno in _FULL:
        return _full(path)
    if error.errno in _FORBIDDEN:
        return _unwritable(path)
    return StoreError(
        f"the chat history {path} cannot be used: {system_fault(error)}; see whether its folder is there and may be "
        "read and written"
    )


def _of_sqlite(path: Path, error: sqlite3.Error) -> StoreError:
    kind = primary_code(error)
    if kind == sqlite3.SQLITE_FULL:
        return _full(path)
    if kind in _LOCKED:
        return StoreError(
            f"another program has locked the chat history {path}; close it there (a backup, a viewer of databases)"
        )
    if kind in _UNWRITABLE:
        return _unwritable(path)
    if kind == sqlite3.SQLITE_NOMEM or _code(error) == _IOERR_NOMEM:
        return StoreError(
            f"there is not enough memory for the chat history {path}; close other programs"
        )
    if kind == sqlite3.SQLITE_TOOBIG:
        return StoreError(
            f"a text is too large for the chat history {path}, which takes up to 1 GB at once; make it shorter"
        )
    if kind in _DAMAGED:
        return StoreError(
            f"the chat history {path} is damaged and cannot be put right; move the file away and start "
            "Layby again"
        )
    if kind in _OF_THE_DISK:
        return _of_the_disk(path, kind)
    _log.info("%s: %s (%s)", path, error, _code(error))
    return StoreError(f"the chat history {path} cannot be used; the log has the particulars")


def _of_the_disk(path: Path, kind: int) -> StoreError:
    try:
        _try_to_write(path.parent)
    except OSError as cause:
        return _of_system(path, cause)
    if kind == sqlite3.SQLITE_CANTOPEN:
        return StoreError(
            f"the chat history {path} cannot be opened; see whether its folder is there and may be read and written"
        )
    return StoreError(
        f"the chat history {path} could not be read or written; see whether its disk is there and sound"
    )


def _try_to_write(folder: Path) -> None:
    """Raises OSError where a file in it cannot be made or made larger."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_MOST_ADDED_BYTES))
        file.flush()
        os.fsync(file.fileno())


def _full(path: Path) -> StoreFull:
    return StoreFull(f"there is no room left for the chat history {path}; make room")


def _unwritable(path: Path) -> StoreError:
    return StoreError(
        f"the chat history {path} cannot be written; make the file and its folder writable"
    )
