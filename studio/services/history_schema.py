"""The history's tables and how an older file is brought up to date. Runs in the store's worker thread only."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from studio.models.errors import StoreError

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE chats (
        chat_id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        created_s REAL NOT NULL,
        updated_s REAL NOT NULL,
        system_prompt TEXT NOT NULL,
        sampling TEXT NOT NULL,
        max_tokens INTEGER,
        draft TEXT NOT NULL,
        has_unread INTEGER NOT NULL
    );
    CREATE TABLE messages (
        message_id INTEGER PRIMARY KEY AUTOINCREMENT,
        chat_id INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
        role TEXT NOT NULL,
        text TEXT NOT NULL,
        created_s REAL NOT NULL,
        status TEXT NOT NULL,
        note TEXT NOT NULL,
        stats TEXT NOT NULL
    );
    CREATE INDEX messages_of_chat ON messages (chat_id, message_id);
    CREATE INDEX messages_by_status ON messages (status);
    """,
)
"""Script n brings a file from version n to n + 1. Released ones never change; new ones are added at the end."""


def open_database(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode to an up-to-date history, made if there is none.

    A commit is on the disk when it returns (`synchronous=FULL`): a power cut loses no more than a killed process does.
    Raises sqlite3.Error, and StoreError for a file of a newer version.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        _migrate(connection, path)
    except (sqlite3.Error, StoreError):
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise StoreError(
            f"the chat history {path} has version {version}, this Layby knows up to {len(MIGRATIONS)}; "
            "start the newer Layby, or move the file away"
        )
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE; {script}; PRAGMA user_version = {number}; COMMIT;"
        )
