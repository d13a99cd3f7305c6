"""The folder of saved states: one file for each request, written whole or not at all. Blocking; any thread. No torch.

One process at a time has it. Nothing in it is touched but what Layby has put there. States come and go by renaming, on
the engine thread alone, so that no file is taken for an older one; what takes time is done on files with other names.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, unquote
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from engine.errors import ParkDiskFailed
from engine.file_lock import FileLock
from engine.runtime.disk.saved_state import SavedState
from engine.runtime.disk.state_file import Recalled, read_state, write_state
from engine.system_faults import system_fault

SUFFIX = ".parked.safetensors"
_HALF = ".parked.part"
_LOCK = ".layby.lock"
KEPT_DAYS = 30
"""A state that nobody has come back for is deleted after so long."""
LEFT_FREE_BYTES = 512 << 20
"""Pages are only saved where so much of the disk stays free."""
_MOST_NAME_CHARS = 200


class StateFolder:
    """Made by `open`."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> StateFolder:
        """Take the folder, made if need be; what a dead program has left half written, and what is old, is deleted.

        Raises ParkDiskFailed if it cannot be used, or another process has it.
        """
        lock = FileLock(path / _LOCK)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            is_ours = lock.acquire()
            if is_ours:
                _tidy_up(path)
        except OSError as error:
            lock.release()
            raise ParkDiskFailed(
                f"the folder for parked chats {path} cannot be used: {system_fault(error)}; parked chats are kept in "
                "memory alone"
            ) from error
        if not is_ours:
            raise ParkDiskFailed(
                f"the folder for parked chats {path} is used by another Layby; give each its own. Parked chats are "
                "kept in memory alone"
            )
        return cls(path, lock)

    def close(self) -> None:
        """Leave the folder to others, without what is half written. Idempotent."""
        for half in self.path.glob(f"*{_HALF}"):
            discard(half)
        self._lock.release()

    def request_ids(self) -> tuple[str, ...]:
        """Whose states are there; none where the folder cannot be read."""
        names: list[str] = []
        with contextlib.suppress(OSError):
            names = sorted(path.name for path in self.path.glob(f"*{SUFFIX}") if path.is_file())
        return tuple(unquote(name.removesuffix(SUFFIX)) for name in names)

    def write(
        self,
        state: SavedState,
        pages: Sequence[NDArray[np.uint8]],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> Path | None:
        """Write a state to a file beside its place, which `put` moves there; None if it is not wanted any more.

        Pages are left out where the disk has no room for them. Raises OSError, with nothing left behind.
        """
        num_bytes = sum(page.nbytes for page in pages)
        if num_bytes and shutil.disk_usage(self.path).free < num_bytes + LEFT_FREE_BYTES:
            pages = ()
        state = replace(state, num_pages=len(pages))
        handle, name = tempfile.mkstemp(dir=self.path, suffix=_HALF)
        half, is_whole = Path(name), False
        try:
            with os.fdopen(handle, "wb") as file:
                is_whole = write_state(file, state, pages, is_wanted)
        finally:
            if not is_whole:
                discard(half)
        return half if is_whole else None

    def put(self, half: Path, request_id: str) -> None:
        """Make a written file the state of a request, instead of an older one. Raises OSError."""
        os.replace(half, self._path(request_id))

    def read(self, request_id: str) -> Recalled:
        """The state of a request. Raises StateBroken, OSError."""
        return read_state(self._path(request_id))

    def withdraw(self, request_id: str) -> Path | None:
        """Take the state of a request away at once; returns what is left to be deleted. None there is fine."""
        half = self.path / f"{uuid4().hex}{_HALF}"
        try:
            os.replace(self._path(request_id), half)
        except OSError:
            return None
        return half

    def has(self, request_id: str) -> bool:
        return self._path(request_id).is_file()

    def _path(self, request_id: str) -> Path:
        return self.path / f"{quote(request_id, safe='')[:_MOST_NAME_CHARS]}{SUFFIX}"


def discard(path: Path) -> None:
    """Delete a file as far as that can be done."""
    with contextlib.suppress(OSError):
        path.unlink()


def _tidy_up(folder: Path) -> None:
    for half in folder.glob(f"*{_HALF}"):
        discard(half)
    oldest_s = time.time() - KEPT_DAYS * 86_400
    for path in folder.glob(f"*{SUFFIX}"):
        if path.is_file() and path.stat().st_mtime < oldest_s:
            discard(path)
