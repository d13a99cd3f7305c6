"""The real window on the starter model: a parked chat survives kill -9 and goes on in mid-sentence, byte for byte."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fakes.window_process import window_of

_T = TypeVar("_T")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),  # three windows, each with a model of its own
    pytest.mark.xdist_group("served"),
]

PROMPT = "Tell me a long story about a ship"
PARK_AT_CHARS = 120
ON_DISK_WITHIN_S = 60.0


def hear_until(process: subprocess.Popen[str], *statuses: str) -> list[dict[str, Any]]:
    """What the window says of its reply, up to one of the statuses."""
    heard: list[dict[str, Any]] = []
    assert process.stdout is not None
    while not heard or heard[-1]["status"] not in statuses:
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        heard.append(json.loads(line))
    return heard


def wait_until(look: Callable[[], _T], what: str) -> _T:
    """What another process puts on the disk: there is nothing to wait on but time."""
    deadline_s = time.monotonic() + ON_DISK_WITHIN_S
    while not (found := look()):
        assert time.monotonic() < deadline_s, f"{what} did not come"
        time.sleep(0.05)
    return found


def files(folder: Path) -> list[Path]:
    return list(folder.glob("*.parked.safetensors"))


def stored(home: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(home / "data" / "history.db")) as connection:
        return connection.execute("SELECT role, text FROM messages ORDER BY message_id").fetchall()


def test_a_parked_chat_survives_kill_9_and_goes_on_to_the_bytes_of_an_undisturbed_run(
    tmp_path: Path, starter_model: Path
) -> None:
    folder = tmp_path / "parked"
    with window_of(
        "comeback_driver", tmp_path / "undisturbed", starter_model, folder, PROMPT, 0
    ) as process:
        alone = hear_until(process, "done", "length", "failed")[-1]

    home = tmp_path / "home"
    with window_of(
        "comeback_driver", home, starter_model, folder, PROMPT, PARK_AT_CHARS
    ) as process:
        parked = hear_until(process, "parked", "done", "length", "failed")[-1]
        assert parked["status"] == "parked"
        wait_until(lambda: files(folder), "the file")
        process.kill()
        process.wait()
    assert alone["text"].startswith(parked["text"])
    assert PARK_AT_CHARS <= len(parked["text"]) < len(alone["text"])

    with window_of("comeback_driver", home, starter_model, folder) as process:
        heard = hear_until(process, "done", "length", "failed")
        whole = [("user", PROMPT), ("assistant", alone["text"])]
        wait_until(lambda: stored(home) == whole, "the whole reply in the history")
    assert heard[-1]["status"] == alone["status"]
    assert heard[-1]["text"] == alone["text"]
    texts = [one["text"] for one in heard if one["text"]]
    assert all(text.startswith(parked["text"]) for text in texts[1:]), "it went on, not anew"
    assert not files(folder)
