"""Small files are written whole; a lock has one holder, also over processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.file_lock import FileLock
from studio.services.safe_file import set_aside, write_atomically

ROOT = Path(__file__).resolve().parents[3]

HOLD = """
import sys
from pathlib import Path
from engine.file_lock import FileLock
print(FileLock(Path(sys.argv[1])).acquire(), flush=True)
"""
HOLD_UNTIL_KILLED = HOLD.replace("print(FileLock", "lock = FileLock").replace(
    ".acquire(), flush=True)", "\nprint(lock.acquire(), flush=True)\nsys.stdin.read()"
)


def child(script: str, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_file_is_replaced_whole_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.json"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]
    if os.name == "posix":
        assert path.stat().st_mode & 0o077 == 0


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.mkdir()
    with pytest.raises(OSError, match=r"file\.json"):
        write_atomically(path, b"one")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


def test_set_aside_never_replaces_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for number in range(3):
        path.write_text(str(number))
        set_aside(path)
    kept = sorted((entry.name, entry.read_text()) for entry in tmp_path.iterdir())
    assert kept == [("file.broken", "0"), ("file.broken-2", "1"), ("file.broken-3", "2")]


def test_a_lock_has_one_holder_in_a_process_and_comes_back(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert first.acquire()
    assert not second.acquire()
    first.release()
    first.release()
    assert second.acquire()
    second.release()


def test_a_lock_keeps_other_processes_out_and_dies_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with child(HOLD_UNTIL_KILLED, path) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "True\n"
        assert not FileLock(path).acquire()
        holder.kill()
    lock = FileLock(path)
    assert lock.acquire()
    with child(HOLD, path) as other:
        assert other.stdout
        assert other.stdout.readline() == "False\n"
    lock.release()
