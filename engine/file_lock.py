"""A lock between processes: a file that one process at a time holds. The system frees it when that process dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from engine.regular_file import open_regular

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """Held from a successful `acquire` to `release`; two objects exclude each other in one process too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def acquire(self) -> bool:
        """Take the lock if nobody has it; False if somebody does. Raises OSError if the file cannot be made."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = open_regular(self._path, os.O_RDWR | os.O_CREAT)
        try:
            _try_lock(handle)
        except (BlockingIOError, PermissionError):
            os.close(handle)
            return False
        self._handle = handle
        return True

    def release(self) -> None:
        """Give the lock back; nothing if it is not held. The file stays, so that nobody locks a deleted one."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
