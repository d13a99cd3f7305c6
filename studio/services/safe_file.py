"""Small files written whole or not at all; broken ones set aside, never deleted. Any thread."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: after a crash or power cut the old or the new file is there.

    Raises OSError, with the old file unharmed and nothing left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def set_aside(path: Path, ending: str = "broken") -> Path:
    """Rename `path` to the first free of NAME.broken, NAME.broken-2, …; returns the new path."""
    number = 1
    while True:
        suffix = f".{ending}" if number == 1 else f".{ending}-{number}"
        aside = path.with_name(path.name + suffix)
        if not aside.exists():
            return path.rename(aside)
        number += 1
