"""A damaged history file: what can be read goes into a new one, the old one is set aside, never deleted.

Runs in the store's worker thread only.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from studio.models.errors import StoreBroken
from studio.services.history_errors import primary_code
from studio.services.history_rows import (
    ATTACHMENT_COLUMNS,
    CHAT_COLUMNS,
    FOLDER_COLUMNS,
    MESSAGE_COLUMNS,
    PRESET_COLUMNS,
)
from studio.services.history_schema import LINK_MESSAGES, open_database
from studio.services.safe_file import set_aside

_DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_Cells = dict[str, Any]
_TABLES = {
    "folders": FOLDER_COLUMNS,
    "presets": PRESET_COLUMNS,
    "chats": CHAT_COLUMNS,
    "messages": MESSAGE_COLUMNS,
    "attachments": ATTACHMENT_COLUMNS,
}
"""What is carried over, what others refer to first. Words for the search are indexed anew."""
_MOST_LOST = 1_000_000
"""Some seconds of looking for rows in vain."""
_END_WITH_WHAT_IS_LEFT = """
    UPDATE chats SET leaf_id = (SELECT max(message_id) FROM messages WHERE messages.chat_id = chats.chat_id)
    WHERE leaf_id IS NOT NULL AND leaf_id NOT IN (SELECT message_id FROM messages);
"""
_RECOVERED_CHAT = (
    "INSERT OR IGNORE INTO chats (chat_id, title, created_s, updated_s, system_prompt, sampling, draft, has_unread) "
    "VALUES (?, 'Recovered chat', ?, ?, '', '{}', '', 0)"
)


@dataclass(slots=True)
class _Rescued:
    """Rows of a table by their key."""

    rows: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    num_lost: int = 0
    """Keys below which there may have been a row."""


class DamageFound(Exception):
    """The check of the whole file found damage that no statement has met yet."""


def is_damage(error: Exception) -> bool:
    """Whether an error means that the file itself is damaged."""
    if isinstance(error, DamageFound):
        return True
    return isinstance(error, sqlite3.Error) and primary_code(error) in _DAMAGE_CODES


def check_integrity(connection: sqlite3.Connection) -> None:
    """Let SQLite check the whole file. Raises DamageFound with its words, or sqlite3.Error."""
    (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != "ok":
        raise DamageFound(answer)


def rebuild(
    path: Path, connection: sqlite3.Connection | None
) -> tuple[sqlite3.Connection, StoreBroken]:
    """A new history at `path` with all that can still be read, and the notice that says where the old one is.

    `connection` is the open one, if the file could be opened and brought up to date; it is closed. Raises OSError,
    sqlite3.Error.
    """
    tables, lost = _read_tables(connection or sqlite3.connect(path, isolation_level=None))
    aside = set_aside(path)
    for suffix in ("-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.rename(aside.with_name(aside.name + suffix))
    fresh = open_database(path)
    _insert(fresh, tables)
    num_chats, num_messages = len(tables["chats"]), len(tables["messages"])
    if not num_chats:
        return fresh, StoreBroken(
            f"nothing in it could be read; the damaged file is kept as {aside}"
        )
    if num_lost := lost.get("messages", 0):
        return fresh, StoreBroken(
            f"what could be read is here (chats: {num_chats:,}, messages: {num_messages:,}), up to {num_lost:,} "
            f"messages are lost; the damaged file is kept as {aside}"
        )
    return fresh, StoreBroken(
        f"what could be read is here (chats: {num_chats:,}, messages: {num_messages:,}); the damaged file is kept as "
        f"{aside}"
    )


def _read_tables(
    connection: sqlite3.Connection,
) -> tuple[dict[str, list[_Cells]], dict[str, int]]:
    """What can be read of each table, as cells by column, and how many rows at most cannot.

    A file of an older version has fewer tables and columns.
    """
    tables: dict[str, list[_Cells]] = {}
    lost: dict[str, int] = {}
    for table, columns in _TABLES.items():
        known = columns.split(", ")
        present: list[str] = []
        with contextlib.suppress(sqlite3.Error):
            info = connection.execute(f"PRAGMA table_info({table})").fetchall()
            present = [name for _, name, *_ in info if name in known]
        tables[table] = []
        if known[0] in present:
            rescued = _readable_rows(connection, table, present)
            rows = (rescued.rows[key] for key in sorted(rescued.rows))
            tables[table] = [dict(zip(present, row, strict=True)) for row in rows]
            lost[table] = rescued.num_lost
    with contextlib.suppress(sqlite3.Error):
        connection.close()
    return tables, lost


def _readable_rows(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> _Rescued:
    """The rows on both sides of every damage, which is halved until nothing of what is in it can be read.

    The first column is the key. Rows are many and damaged places few: to look for each key alone would take longer.
    """
    key = columns[0]
    query = f"SELECT {', '.join(columns)} FROM {table} WHERE {key} BETWEEN ? AND ? ORDER BY {key} "
    rescued = _Rescued()
    ranges = [(1, _last_key(connection, table, key))]
    while ranges and rescued.num_lost < _MOST_LOST:
        low, high = ranges.pop()
        for direction in ("ASC", "DESC"):
            try:
                for row in connection.execute(query + direction, (low, high)):
                    rescued.rows[row[0]] = row
                    low, high = (row[0] + 1, high) if direction == "ASC" else (low, row[0] - 1)
            except sqlite3.Error:
                continue
            break  # nothing is damaged between the two
        else:
            middle = (low + high) // 2
            if low < high:
                ranges += [(middle + 1, high), (low, middle)]
            rescued.num_lost += low == high
    return rescued


def _last_key(connection: sqlite3.Connection, table: str, key: str) -> int:
    """No key is greater, as far as can be told."""
    found: list[int] = []
    for query in (
        f"SELECT max({key}) FROM {table}",
        f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
    ):
        with contextlib.suppress(sqlite3.Error):
            found += [row[0] for row in connection.execute(query) if isinstance(row[0], int)]
    return max(found, default=_MOST_LOST)


def _insert(connection: sqlite3.Connection, tables: dict[str, list[_Cells]]) -> None:
    """Rows that break a rule of the tables are left out; a message whose chat is lost gets a chat."""
    connection.execute("BEGIN IMMEDIATE")
    for table, rows in tables.items():
        for cells in rows:
            with contextlib.suppress(sqlite3.IntegrityError):
                if table == "messages":
                    moment_s = cells.get("created_s")
                    connection.execute(_RECOVERED_CHAT, (cells.get("chat_id"), moment_s, moment_s))
                marks = ", ".join("?" for _ in cells)
                statement = f"INSERT INTO {table} ({', '.join(cells)}) VALUES ({marks})"
                connection.execute(statement, tuple(cells.values()))
    connection.execute("COMMIT")
    if tables["messages"] and "parent_id" not in tables["messages"][0]:
        connection.executescript(LINK_MESSAGES)
    connection.executescript(_END_WITH_WHAT_IS_LEFT)
