"""A damaged history file: what can be read goes into a new one, the old one is set aside, never deleted.

Runs in the store's worker thread only.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

from studio.models.errors import StoreBroken
from studio.services.history_rows import CHAT_COLUMNS, MESSAGE_COLUMNS
from studio.services.history_schema import open_database
from studio.services.safe_file import set_aside

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_RECOVERED_CHAT = (
    "INSERT OR IGNORE INTO chats VALUES (?, 'Recovered chat', ?, ?, '', '{}', NULL, '', 0)"
)


class DamageFound(Exception):
    """The check of the whole file found damage that no statement has met yet."""


def is_damage(error: Exception) -> bool:
    """Whether an error means that the file itself is damaged."""
    if isinstance(error, DamageFound):
        return True
    if not isinstance(error, sqlite3.Error) or not hasattr(
        error, "sqlite_errorcode"
    ):  # an error of the sqlite3 module, not of the file
        return False
    return error.sqlite_errorcode & 0xFF in _DAMAGE_CODES


def check_integrity(connection: sqlite3.Connection) -> None:
    """Let SQLite check the whole file. Raises DamageFound with its words, or sqlite3.Error."""
    (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != "ok":
        raise DamageFound(answer)


def rebuild(
    path: Path, connection: sqlite3.Connection | None
) -> tuple[sqlite3.Connection, StoreBroken]:
    """A new history at `path` with all that can still be read, and the notice that says where the old one is.

    `connection` is the open one, if the file could be opened at all; it is closed. Raises OSError, sqlite3.Error.
    """
    chats, messages = [], []
    if connection is not None:
        chats = _readable_rows(connection, f"SELECT {CHAT_COLUMNS} FROM chats ORDER BY chat_id")
        messages = _readable_rows(
            connection, f"SELECT {MESSAGE_COLUMNS} FROM messages ORDER BY message_id"
        )
        with contextlib.suppress(sqlite3.Error):
            connection.close()
    aside = set_aside(path)
    for suffix in ("-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.rename(aside.with_name(aside.name + suffix))
    fresh = open_database(path)
    _insert(fresh, chats, messages)
    return fresh, StoreBroken(
        f"the chat history was damaged; {len(chats):,} chats with {len(messages):,} messages could be read and are "
        f"here, the damaged file is kept as {aside}"
    )


def _readable_rows(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    """The rows from both ends of a table up to the damage, each once (the first column is the key)."""
    rows: dict[object, tuple[Any, ...]] = {}
    for direction in ("ASC", "DESC"):
        with contextlib.suppress(sqlite3.Error):
            for row in connection.execute(f"{query} {direction}"):
                if direction == "DESC" and row[0] in rows:
                    break
                rows[row[0]] = row
    return list(rows.values())


def _insert(
    connection: sqlite3.Connection, chats: list[tuple[Any, ...]], messages: list[tuple[Any, ...]]
) -> None:
    """Rows that break a rule of the tables are left out; a message whose chat is lost gets a chat."""
    connection.execute("BEGIN IMMEDIATE")
    for row in chats:
        with contextlib.suppress(sqlite3.IntegrityError):
            connection.execute(
                f"INSERT INTO chats ({CHAT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row
            )
    for row in messages:
        with contextlib.suppress(sqlite3.IntegrityError):
            _, chat_id, _, _, created_s, *_ = row
            connection.execute(_RECOVERED_CHAT, (chat_id, created_s, created_s))
            connection.execute(
                f"INSERT INTO messages ({MESSAGE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
            )
    connection.execute("COMMIT")
