"""What is carried over from a damaged history: every row that SQLite can still read by its key."""

from __future__ import annotations

import random
import re
import sqlite3
from pathlib import Path

import pytest

from studio.models.chat import Conversation, Message, Role
from studio.services.history_repair import rebuild
from studio.services.history_rows import CHAT_COLUMNS, MESSAGE_COLUMNS, chat_row, message_row
from studio.services.history_schema import open_database

PAGE_BYTES = 4096
NUM_CHATS, NUM_MESSAGES = 150, 1500


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A history with texts of all lengths, as a file."""
    path = tmp_path_factory.mktemp("whole") / "history.db"
    connection, dice = open_database(path), random.Random(1)
    chats = [chat_row(Conversation(n + 1, f"chat {n}", 0.0, 0.0)) for n in range(NUM_CHATS)]
    put(connection, "chats", CHAT_COLUMNS, chats)
    messages = []
    for number in range(NUM_MESSAGES):
        text = f"{number} " + "word " * int(dice.expovariate(1 / 60))
        message = Message(number + 1, 1 + dice.randrange(NUM_CHATS), Role.USER, text, 0.0)
        messages.append(message_row(message))
    put(connection, "messages", MESSAGE_COLUMNS, messages)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.read_bytes()


def put(
    connection: sqlite3.Connection, table: str, columns: str, rows: list[tuple[object, ...]]
) -> None:
    marks = ", ".join("?" for _ in columns.split(", "))
    connection.execute("BEGIN")
    connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)
    connection.execute("COMMIT")


def readable(path: Path, table: str, key: str, last: int) -> set[int]:
    """The keys whose rows can be read one by one."""
    connection, found = sqlite3.connect(path), set()
    for number in range(1, last + 1):
        try:
            row = connection.execute(f"SELECT * FROM {table} WHERE {key} = ?", (number,)).fetchone()
        except sqlite3.Error:
            continue
        if row is not None:
            found.add(number)
    connection.close()
    return found


def keys(connection: sqlite3.Connection, table: str, key: str) -> set[int]:
    return {number for (number,) in connection.execute(f"SELECT {key} FROM {table}")}


@pytest.mark.parametrize("seed", range(8))
def test_all_that_can_be_read_is_carried_over(whole: bytes, tmp_path: Path, seed: int) -> None:
    path, dice = tmp_path / "history.db", random.Random(seed)
    data = bytearray(whole)
    num_pages = len(data) // PAGE_BYTES
    for page in dice.sample(range(num_pages // 10, num_pages), max(2, num_pages // 25)):
        data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = dice.randbytes(PAGE_BYTES)
    path.write_bytes(data)
    expected = readable(path, "messages", "message_id", NUM_MESSAGES)
    chats = readable(path, "chats", "chat_id", NUM_CHATS)
    assert NUM_MESSAGES // 2 < len(expected) < NUM_MESSAGES, (
        "there is something to save, and damage"
    )
    fresh, notice = rebuild(path, None)
    assert keys(fresh, "messages", "message_id") >= expected
    assert keys(fresh, "chats", "chat_id") >= chats
    assert fresh.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    fresh.close()
    told = re.search(r"messages: ([\d,]+)", str(notice))
    assert told is not None
    assert int(told[1].replace(",", "")) >= len(expected)
    assert path.with_name("history.db.broken").read_bytes() == bytes(data)


def test_what_is_missing_is_counted(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(whole)
    connection = sqlite3.connect(path)
    (page,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'presets'"
    ).fetchone()
    connection.close()
    data = bytearray(whole)
    data[(page - 1) * PAGE_BYTES : page * PAGE_BYTES] = b"\xa5" * PAGE_BYTES
    path.write_bytes(data)
    fresh, notice = rebuild(path, None)
    fresh.close()
    assert f"chats: {NUM_CHATS}/{NUM_CHATS}" in str(notice)
    assert f"messages: {NUM_MESSAGES:,}/{NUM_MESSAGES:,}" in str(notice)


def test_a_text_of_damaged_letters_is_kept_with_marks_in_it(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    place = whole.index(b"0 word word")
    data = bytearray(whole)
    data[place + 2] = 0xFF
    path.write_bytes(data)
    fresh, _ = rebuild(path, None)
    (text,) = fresh.execute("SELECT text FROM messages WHERE text LIKE '%\ufffd%'").fetchone()
    fresh.close()
    assert text.startswith("0 \ufffdord") or "\ufffdord" in text
