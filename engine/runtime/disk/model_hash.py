"""The SHA-256 of a model's weight files, remembered as long as the files stay as they are. Blocking; any thread."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from engine.regular_file import open_regular

_CHUNK_BYTES = 4 << 20
_MOST_REMEMBERED = 64
_MOST_BYTES = 1 << 20


class HashStopped(Exception):
    """Nobody wants to know any more."""

    def __init__(self) -> None:
        super().__init__("its hash was given up")


def model_sha256(files: Sequence[Path], cache: Path, is_wanted: Callable[[], bool]) -> str:
    """One hash over all files, in order. `cache` is a file of hashes known by path, size and time of the last change.

    Raises OSError when a file cannot be read, HashStopped once `is_wanted` says no.
    """
    key = _key_of(files)
    known = _read(cache)
    if key in known:
        return known[key]
    digest = hashlib.sha256()
    for path in files:
        with os.fdopen(open_regular(path), "rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                if not is_wanted():
                    raise HashStopped
                digest.update(chunk)
    if key == _key_of(files):  # else it changed while it was read
        known[key] = digest.hexdigest()
        _write(cache, dict(list(known.items())[-_MOST_REMEMBERED:]))
    return digest.hexdigest()


def _key_of(files: Sequence[Path]) -> str:
    facts = [(os.path.realpath(path), path.stat()) for path in files]
    return json.dumps([[name, fact.st_size, fact.st_mtime_ns] for name, fact in facts])


def _read(cache: Path) -> dict[str, str]:
    """What is remembered; nothing where that cannot be read."""
    try:
        with os.fdopen(open_regular(cache), encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_size > _MOST_BYTES:
                return {}
            known = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict) or not all(isinstance(one, str) for one in known.values()):
        return {}
    return known


def _write(cache: Path, known: dict[str, str]) -> None:
    part = cache.with_name(cache.name + ".part")
    with contextlib.suppress(OSError):  # then it is computed again
        part.unlink(missing_ok=True)
        with part.open(
            "x", encoding="utf-8"
        ) as file:  # never into what somebody else has put there
            file.write(json.dumps(known))
        part.replace(cache)
