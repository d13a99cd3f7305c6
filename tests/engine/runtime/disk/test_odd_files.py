"""Things in the folder of saved states that are no files: refused or replaced, and never waited for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import ParkDiskFailed
from engine.runtime.disk.model_hash import model_sha256
from engine.runtime.disk.state_file import read_state
from engine.runtime.disk.state_folder import SUFFIX, StateFolder
from fakes.odd_files import ODD_FILES, outcome_of
from fakes.saved_states import some_pages, state

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are none here")
every_kind = pytest.mark.parametrize("make", ODD_FILES.values(), ids=ODD_FILES.keys())
Make = Callable[[Path], None]


@every_kind
def test_a_state_that_is_no_file_cannot_be_read(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "state")
    assert isinstance(outcome_of(lambda: read_state(tmp_path / "state")), OSError)


@every_kind
def test_no_state_is_seen_where_there_is_no_file_and_the_others_are_kept(
    tmp_path: Path, make: Make
) -> None:
    make(tmp_path / f"odd{SUFFIX}")
    folder = outcome_of(lambda: StateFolder.open(tmp_path))
    assert isinstance(folder, StateFolder)
    half = folder.write(state(), list(some_pages()))
    assert half is not None
    folder.put(half, "chat-1-2")
    assert folder.request_ids() == ("chat-1-2",)
    assert not folder.has("odd")
    assert isinstance(outcome_of(lambda: folder.read("odd")), OSError)
    folder.close()


@every_kind
@pytest.mark.parametrize("name", [".layby.hashes.json", ".layby.hashes.json.part"])
def test_hashes_are_computed_where_they_cannot_be_remembered(
    tmp_path: Path, make: Make, name: str
) -> None:
    weights = tmp_path / "weights"
    weights.write_bytes(b"one")
    make(tmp_path / name)
    cache = tmp_path / ".layby.hashes.json"
    found = outcome_of(lambda: model_sha256((weights,), cache, lambda: True))
    assert found == hashlib.sha256(b"one").hexdigest()


@every_kind
def test_weights_that_are_no_file_have_no_hash(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "weights")
    cache = tmp_path / "cache"
    found = outcome_of(lambda: model_sha256((tmp_path / "weights",), cache, lambda: True))
    assert isinstance(found, OSError)


@every_kind
def test_a_lock_that_is_no_file_is_a_folder_that_cannot_be_used(tmp_path: Path, make: Make) -> None:
    make(tmp_path / ".layby.lock")
    found = outcome_of(lambda: StateFolder.open(tmp_path))
    assert isinstance(found, ParkDiskFailed)
    assert "None" not in str(found)


@every_kind
def test_a_folder_that_is_none_cannot_be_used(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "folder")
    found = outcome_of(lambda: StateFolder.open(tmp_path / "folder"))
    if not (tmp_path / "folder").is_dir():
        assert isinstance(found, ParkDiskFailed)


@every_kind
def test_what_looks_half_written_and_is_no_file_harms_nothing(tmp_path: Path, make: Make) -> None:
    make(tmp_path / "x.parked.part")
    folder = outcome_of(lambda: StateFolder.open(tmp_path))
    assert isinstance(folder, StateFolder)
    folder.close()
