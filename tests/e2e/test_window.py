"""The real window on the starter model: three chats stream at once, and kill -9 costs no more than the last second."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from fakes.window_process import window_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]

PROMPTS = ("Tell me a long story about a ship", "List fifty animals", "Describe the four seasons")
SAVED_WITHIN_S = 1.0


@dataclass(frozen=True)
class Growth:
    """A reply as the window had it at some time."""

    at_s: float
    chat: int
    text: str


def watch(
    process: subprocess.Popen[str], *, until_each_has: int, least_s: float = 0.0
) -> list[Growth]:
    """Read what the window says until every chat has that many characters, and for so long at least."""
    heard: list[Growth] = []
    lengths: dict[int, int] = {}
    assert process.stdout is not None
    while (
        len(lengths) < len(PROMPTS)
        or min(lengths.values()) < until_each_has
        or heard[-1].at_s - heard[0].at_s < least_s
    ):
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        fact = json.loads(line)
        if fact["status"] == "writing":
            heard.append(Growth(time.monotonic(), fact["chat"], fact["text"]))
            lengths[fact["chat"]] = len(fact["text"])
    return heard


def test_three_chats_stream_at_once_and_survive_kill_9(tmp_path: Path, starter_model: Path) -> None:
    home = tmp_path / "home"
    with window_of("window_driver", home, starter_model, *PROMPTS) as process:
        heard = watch(process, until_each_has=250, least_s=2 * SAVED_WITHIN_S)
        process.kill()
        killed_s = time.monotonic()
        process.wait()

    order = [growth.chat for growth in heard]
    turns = sum(a != b for a, b in pairwise(order))
    assert turns > 60, "the three replies did not grow side by side"

    database = home / "data" / "history.db"
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = connection.execute(
            "SELECT chat_id, role, text FROM messages ORDER BY message_id"
        ).fetchall()
    assert [text for _, role, text in rows if role == "user"] == list(PROMPTS)
    saved = {chat: text for chat, role, text in rows if role == "assistant"}
    for chat, text in saved.items():
        due = [g.text for g in heard if g.chat == chat and g.at_s < killed_s - SAVED_WITHIN_S]
        assert due, "the kill came too early to tell"
        assert len(text) >= len(due[-1])
        assert text.startswith(due[-1])
    assert len(saved) == len(PROMPTS)

    with window_of(
        "window_driver", home, starter_model, *PROMPTS
    ) as process:  # it starts again on what is there
        watch(process, until_each_has=1)
    with closing(sqlite3.connect(database)) as connection:
        old = connection.execute(
            "SELECT text, status FROM messages WHERE role = 'assistant' ORDER BY message_id LIMIT 3"
        ).fetchall()
    assert old == [(saved[chat], "interrupted") for chat in sorted(saved)]
