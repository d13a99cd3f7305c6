"""A full disk: what is there can be read, what is new is kept until there is room, and words say which it is."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import pytest

from fakes.full_disk import story_on_a_full_disk
from studio.models.errors import StoreBusy, StoreError, StoreFull
from studio.services import history_errors
from studio.services.history_errors import as_store_errors

ERRORS = range(sqlite3.SQLITE_ERROR, sqlite3.SQLITE_NOTADB + 1)
"""Every primary code that is an error."""


def said(path: Path, error: Exception) -> StoreError:
    with pytest.raises(StoreError) as caught, as_store_errors(path):
        raise error
    return caught.value


def sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


def test_chats_can_be_read_on_a_full_disk_and_what_is_new_is_kept_until_there_is_room(
    tmp_path: Path,
) -> None:
    told = story_on_a_full_disk(tmp_path)
    if told is None:
        pytest.skip("this system gives nobody a disk of his own")
    assert told["new"] == "store_full"
    assert told["listed"] == "interrupted"
    assert told["read"] == [
        ["Where is the key?", "done"],
        ["Under the m", "interrupted"],
    ]
    assert told["notices"] == [["store_full", " make room; Layby tries again by itself"]]
    assert (told["sent"], told["sent later"]) == (False, True)
    assert told["early"] == ["early", ""], "it waited for a model, and then for room"
    assert told["later"] == []
    titles = [title for title, _draft in told["kept"]]
    assert titles == ["Where is the key?", "early", "keep this in the field"]


@pytest.mark.parametrize("code", ERRORS)
def test_every_kind_of_error_of_sqlite_leads_on(tmp_path: Path, code: int) -> None:
    words = str(said(tmp_path / "history.db", sqlite_error(code)))
    what, _, remedy = words.partition("; ")
    assert str(tmp_path / "history.db") in what
    assert remedy


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("code", [sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR | (19 << 8)])
def test_a_disk_that_is_full_is_called_so_whatever_sqlite_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, number: int
) -> None:
    def is_full(_folder: Path) -> None:
        raise OSError(number, os.strerror(number))

    path = tmp_path / "history.db"
    assert not isinstance(said(path, sqlite_error(code)), StoreFull | StoreBusy)
    monkeypatch.setattr(history_errors, "_try_to_write", is_full)
    assert isinstance(said(path, sqlite_error(code)), StoreFull)
    assert isinstance(said(path, OSError(number, "No space left on device")), StoreFull)


def test_a_folder_that_may_not_be_written_is_called_so(tmp_path: Path) -> None:
    words = str(said(tmp_path / "history.db", PermissionError(errno.EACCES, "Permission denied")))
    assert "make the file and its folder writable" in words
    gone = tmp_path / "gone" / "history.db"
    words = str(said(gone, sqlite_error(sqlite3.SQLITE_CANTOPEN)))
    assert "see whether its folder is there" in words
