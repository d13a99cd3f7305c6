"""The folder of saved states: whole files or none, one process, nothing of others touched, old ones deleted."""

from __future__ import annotations

import os
import shutil
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ParkDiskFailed
from engine.runtime.disk.model_hash import HashStopped, model_sha256
from engine.runtime.disk.state_folder import KEPT_DAYS, SUFFIX, StateFolder
from fakes.saved_states import some_pages, state


def save(folder: StateFolder, request_id: str = "chat-1-2") -> None:
    half = folder.write(state(request_id=request_id), list(some_pages()))
    assert half is not None
    folder.put(half, request_id)


def test_a_state_is_there_once_it_is_put(tmp_path: Path) -> None:
    folder = StateFolder.open(tmp_path / "new" / "folder")
    half = folder.write(state(), list(some_pages()))
    assert half is not None
    assert folder.request_ids() == ()
    folder.put(half, "chat-1-2")
    assert folder.request_ids() == ("chat-1-2",)
    assert folder.has("chat-1-2")
    assert folder.read("chat-1-2").state == state()
    left = folder.withdraw("chat-1-2")
    assert left is not None
    assert left.is_file()
    assert folder.withdraw("chat-1-2") is None
    assert folder.request_ids() == ()


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    folder = StateFolder.open(tmp_path / "folder")
    for request_id in ("../../evil", "/etc/passwd", "a\\b", "..", "con:1"):
        save(folder, request_id)
        assert folder.has(request_id)
    assert sorted(folder.request_ids()) == sorted(
        ("../../evil", "/etc/passwd", "a\\b", "..", "con:1")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_opening_deletes_what_is_half_written_or_old_and_nothing_else(tmp_path: Path) -> None:
    folder = StateFolder.open(tmp_path)
    save(folder, "old")
    save(folder, "new")
    folder.close()
    month_ago_s = time.time() - (KEPT_DAYS + 1) * 86_400
    os.utime(tmp_path / f"old{SUFFIX}", (month_ago_s, month_ago_s))
    (tmp_path / "tmpabc.parked.part").write_bytes(b"half")
    (tmp_path / "letter.txt").write_text("mine")
    os.utime(tmp_path / "letter.txt", (0, 0))
    folder = StateFolder.open(tmp_path)
    assert folder.request_ids() == ("new",)
    assert (tmp_path / "letter.txt").read_text() == "mine"
    assert not (tmp_path / "tmpabc.parked.part").exists()


def test_a_failed_or_unwanted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = StateFolder.open(tmp_path)
    assert folder.write(state(), list(some_pages()), lambda: False) is None

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        folder.write(state(), list(some_pages()))
    assert [path.name for path in tmp_path.iterdir()] == [".layby.lock"]


def test_where_the_disk_is_nearly_full_only_the_tokens_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(1 << 40, 1 << 40, 1000))
    folder = StateFolder.open(tmp_path)
    save(folder)
    recalled = folder.read("chat-1-2")
    assert recalled.state == state(num_pages=0)
    assert len(recalled.pages) == 0


def test_the_folder_is_one_process_alone(tmp_path: Path) -> None:
    first = StateFolder.open(tmp_path)
    with pytest.raises(ParkDiskFailed, match="another Layby"):
        StateFolder.open(tmp_path)
    first.close()
    StateFolder.open(tmp_path).close()


def test_a_hash_is_remembered_as_long_as_the_file_stays_as_it_is(tmp_path: Path) -> None:
    first, second, cache = tmp_path / "a", tmp_path / "b", tmp_path / "cache"
    first.write_bytes(b"one")
    second.write_bytes(b"two")
    found = model_sha256((first, second), cache, lambda: True)
    assert found == model_sha256((first, second), cache, lambda: pytest.fail("not remembered"))
    assert found != model_sha256((second, first), cache, lambda: True)
    second.write_bytes(b"three")
    assert found != model_sha256((first, second), cache, lambda: True)
    cache.write_text("[1, 2")
    assert model_sha256((first,), cache, lambda: True)
    with pytest.raises(HashStopped):
        model_sha256((second,), cache, lambda: False)


def test_pages_are_copied_out_of_views(tmp_path: Path) -> None:
    memory = np.arange(4 * 96, dtype=np.uint8).reshape(4, 96)
    folder = StateFolder.open(tmp_path)
    half = folder.write(state(), [memory[3], memory[1]])
    assert half is not None
    folder.put(half, "chat-1-2")
    memory[:] = 0
    assert folder.read("chat-1-2").pages[0].tolist() == [(3 * 96 + i) % 256 for i in range(96)]
