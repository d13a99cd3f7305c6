"""Opens files that others can put something else in the place of: never waits, never touches what is no file."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

# A pipe is not waited for, a terminal not adopted; files do not care. Windows has neither, and a text mode.
_SAFELY = (
    getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o600) -> int:
    """A handle on a regular file, or on one that a link leads to; `flags` and `mode` as `os.open` takes them.

    Raises OSError, for a pipe, a socket, a device or a folder too.
    """
    handle = os.open(path, flags | _SAFELY, mode)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return handle
