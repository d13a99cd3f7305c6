"""The history's tables and how an older file is brought up to date. Runs in the store's worker thread only."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from studio.models.errors import StoreError
from studio.services.history_errors import is_of_the_disk

_ALIVE = "'queued', 'reading', 'writing', 'parked'"
"""Statuses of replies that grow; of a reply that waits for its tools the words are known."""
LINK_MESSAGES = """
    UPDATE messages SET parent_id = (
        SELECT max(older.message_id) FROM messages AS older
        WHERE older.chat_id = messages.chat_id AND older.message_id < messages.message_id
    );
    UPDATE chats SET leaf_id = (
        SELECT max(message_id) FROM messages WHERE messages.chat_id = chats.chat_id
    );
"""
"""Makes a line of the messages of each chat, as they were before they were trees."""

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
    f"""
    CREATE TABLE folders (
        folder_id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        parent_id INTEGER,
        place INTEGER NOT NULL,
        is_open INTEGER NOT NULL
    );
    CREATE TABLE presets (
        preset_id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        system_prompt TEXT NOT NULL,
        sampling TEXT NOT NULL,
        max_tokens INTEGER,
        stop TEXT NOT NULL
    );
    CREATE TABLE attachments (
        attachment_id INTEGER PRIMARY KEY AUTOINCREMENT,
        chat_id INTEGER NOT NULL REFERENCES chats ON DELETE CASCADE,
        message_id INTEGER REFERENCES messages ON DELETE CASCADE,
        holder TEXT NOT NULL,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        num_tokens INTEGER,
        data BLOB NOT NULL,
        path TEXT NOT NULL
    );
    CREATE INDEX attachments_of_chat ON attachments (chat_id);
    CREATE INDEX attachments_of_message ON attachments (message_id);
    ALTER TABLE chats ADD COLUMN stop TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE chats ADD COLUMN preset_id INTEGER;
    ALTER TABLE chats ADD COLUMN folder_id INTEGER;
    ALTER TABLE chats ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE chats ADD COLUMN is_archived INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE chats ADD COLUMN deleted_s REAL;
    ALTER TABLE chats ADD COLUMN leaf_id INTEGER;
    ALTER TABLE chats ADD COLUMN queued TEXT;
    ALTER TABLE messages ADD COLUMN parent_id INTEGER;
    {LINK_MESSAGES}
    CREATE VIRTUAL TABLE message_words USING fts5(
        text, content = 'messages', content_rowid = 'message_id',
        tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
    );
    INSERT INTO message_words (rowid, text)
        SELECT message_id, text FROM messages WHERE status NOT IN ({_ALIVE});
    CREATE TRIGGER words_of_new AFTER INSERT ON messages WHEN new.status NOT IN ({_ALIVE}) BEGIN
        INSERT INTO message_words (rowid, text) VALUES (new.message_id, new.text);
    END;
    CREATE TRIGGER words_of_gone AFTER DELETE ON messages WHEN old.status NOT IN ({_ALIVE}) BEGIN
        INSERT INTO message_words (message_words, rowid, text)
            VALUES ('delete', old.message_id, old.text);
    END;
    CREATE TRIGGER words_of_changed AFTER UPDATE OF text, status ON messages
    WHEN old.text IS NOT new.text OR (old.status IN ({_ALIVE})) IS NOT (new.status IN ({_ALIVE})) BEGIN
        INSERT INTO message_words (message_words, rowid, text)
            SELECT 'delete', old.message_id, old.text WHERE old.status NOT IN ({_ALIVE});
        INSERT INTO message_words (rowid, text)
            SELECT new.message_id, new.text WHERE new.status NOT IN ({_ALIVE});
    END;
    """,
    """
    ALTER TABLE messages ADD COLUMN calls TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE chats ADD COLUMN tools TEXT NOT NULL DEFAULT '{}';
    """,
    "ALTER TABLE chats ADD COLUMN queued_for_model INTEGER NOT NULL DEFAULT 0",
)
"""Script n brings a file from version n to n + 1. Released ones never change; new ones are added at the end.

Version 2: a chat's messages are a tree (`parent_id`, and the chat's `leaf_id`), and their words are indexed once they
have ended: a growing reply would be indexed anew with every save.

Version 3: a message's calls of tools, and the tools of a chat. Version 4: whether a queued prompt waits for a model."""


def open_database(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode to an up-to-date history, made if there is none.

    A commit is on the disk when it returns (`synchronous=FULL`): a power cut loses no more than a killed process does.
    Where the disk is too full even for reading as usual, nobody else can read it meanwhile. Raises sqlite3.Error, and
    StoreError for a file of a newer version.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _open(path)
    except sqlite3.Error as error:
        if not is_of_the_disk(error):
            raise
        return _open(path, is_alone=True)


def _open(path: Path, *, is_alone: bool = False) -> sqlite3.Connection:
    """`is_alone`: without the file that SQLite shares with other readers, which takes room on the disk."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        if is_alone:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
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
