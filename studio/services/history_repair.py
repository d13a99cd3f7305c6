"""A damaged history file: what can be read goes into a new one, the old one is set aside, never deleted.

Runs in the store's worker thread only.
"""

from __future__ import annotations

import contextlib
import sqlite3
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
_LAST_KEY = 1 << 40
"""Nobody has so many messages."""
_MOST_FAILURES = 50_000
"""Looks at damage before the rest is given up: a second or so. One damaged page is some hundred."""
_RECOVERED_CHAT = (
    "INSERT OR IGNORE INTO chats (chat_id, title, created_s, updated_s, system_prompt, sampling, draft, has_unread) "
    "VALUES (?, 'Recovered chat', ?, ?, '', '{}', '', 0)"
)


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
    connection = connection or sqlite3.connect(path, isolation_level=None)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    totals = [_count(connection, table) for table in ("chats", "messages")]
    tables = _read_tables(connection)
    aside = set_aside(path)
    for suffix in ("-wal", "-shm"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            companion.rename(aside.with_name(aside.name + suffix))
    fresh = open_database(path)
    _insert(fresh, tables)
    if not tables["chats"]:
        return fresh, StoreBroken(
            f"nothing in it could be read; the damaged file is kept as {aside}"
        )
    chats, messages = (
        _share(len(tables[table]), total)
        for table, total in zip(("chats", "messages"), totals, strict=True)
    )
    return fresh, StoreBroken(
        f"what could be read is here (chats: {chats}, messages: {messages}); the damaged file is kept as {aside}"
    )


def _count(connection: sqlite3.Connection, table: str) -> int:
    """How many rows there were; 0 where that cannot be read. SQLite counts in the smallest index."""
    with contextlib.suppress(sqlite3.Error):
        (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)
    return 0


def _share(number: int, total: int) -> str:
    return f"{number:,}/{total:,}" if total >= number else f"{number:,}"


def _read_tables(connection: sqlite3.Connection) -> dict[str, list[_Cells]]:
    """What can be read of each table, as cells by column; a file of an older version has fewer of both."""
    tables: dict[str, list[_Cells]] = {}
    for table, columns in _TABLES.items():
        known = columns.split(", ")
        present: list[str] = []
        with contextlib.suppress(sqlite3.Error):
            info = connection.execute(f"PRAGMA table_info({table})").fetchall()
            present = [name for _, name, *_ in info if name in known]
        tables[table] = []
        if known[0] in present:
            query = f"SELECT {', '.join(present)} FROM {table}"
            rows = _readable_rows(connection, query, known[0])
            tables[table] = [dict(zip(present, row, strict=True)) for row in rows]
    with contextlib.suppress(sqlite3.Error):
        connection.close()
    return tables


def _readable_rows(connection: sqlite3.Connection, query: str, key: str) -> list[tuple[Any, ...]]:
    """All rows that can be read, by the first column, which is the key of the table.

    From both ends up to the damage; then the same with each half of what lies between, as long as it has two keys.
    """
    rows: dict[object, tuple[Any, ...]] = {}
    gaps, num_failures = [(1, _LAST_KEY)], 0
    while gaps and num_failures < _MOST_FAILURES:
        low, high = gaps.pop()
        statement = f"{query} WHERE {key} BETWEEN ? AND ? ORDER BY {key}"
        try:
            for row in connection.execute(statement, (low, high)):
                rows[row[0]] = row
                low = row[0] + 1
            continue
        except sqlite3.Error:
            num_failures += 1
        with contextlib.suppress(sqlite3.Error):
            for row in connection.execute(f"{statement} DESC", (low, high)):
                rows[row[0]] = row
                high = row[0] - 1
        if low < high:
            middle = (low + high) // 2
            gaps += [(low, middle), (middle + 1, high)]
    return list(rows.values())


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
