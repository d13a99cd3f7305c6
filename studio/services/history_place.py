"""The history's file in its place: whether it is still there while it is open, and how it comes back if not.

A program that synchronises folders, or a hand, may move or replace it; what is written after that would be gone when it
is closed. Runs in the store's worker thread only.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from studio.models.errors import StoreMoved
from studio.services.safe_file import set_aside

_COMPANIONS = ("-wal", "-shm")
FileId = tuple[int, int]


def file_id(path: Path) -> FileId | None:
    """What tells a file from another one in its place; None where there is none. Raises OSError."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def put_back(path: Path, connection: sqlite3.Connection) -> StoreMoved:
    """Write all that `connection` holds to `path` anew and close it; what to tell.

    A file that came in its place is kept under another name. Raises OSError, sqlite3.Error; then nothing has changed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".again")
    fresh.unlink(missing_ok=True)
    copy = sqlite3.connect(fresh)
    try:
        connection.backup(copy)
    finally:
        copy.close()
    other = _move_other(path)
    os.replace(fresh, path)
    connection.close()
    if other is None:
        return StoreMoved(
            f"the chat history {path} was removed while it was open; it is there again with all chats"
        )
    return StoreMoved(
        f"another file was put in place of the chat history {path} while it was open; the history is there again with "
        f"all chats, the other file is kept as {other}"
    )


def _move_other(path: Path) -> Path | None:
    """Set aside what stands in its place; where it is then, None for nothing.

    The companions are of the file that is gone: all that was in them is in the new one, which they must not be near.
    """
    for suffix in _COMPANIONS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return set_aside(path, "other") if path.exists() else None
