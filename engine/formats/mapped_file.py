"""A model file mapped into memory, read-only. Used by the thread that opened it. No torch."""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path

import numpy as np

from engine.errors import CorruptModel, ModelNotFound

DAMAGED = "the file is damaged or incomplete; download it again"


def shorten(value: object, limit: int = 80) -> str:
    """A value of a file as it may stand in a message: one line, of a length that can be read."""
    if isinstance(value, str):
        return repr(value if len(value) <= limit else value[: limit - 3] + "...")
    if value is None or isinstance(value, int | float):
        return f"{value!r:.80}"
    return f"a value of type {type(value).__name__}"


class MappedFile:
    """The bytes of a file. Pages are read from disk as they are touched.

    Raises ModelNotFound when there is no such file, CorruptModel when it is empty, OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():  # also: opening a pipe would wait for ever
            raise ModelNotFound(f"{path} is no file; check the path")
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            self.size = facts.st_size
            self.modified_s = int(facts.st_mtime)
            if not self.size:
                raise CorruptModel(f"{path.name}: the file is empty (0 bytes); {DAMAGED}")
            self.data = mmap.mmap(file.fileno(), self.size, access=mmap.ACCESS_READ)

    def view(self, offset: int, num_bytes: int) -> np.ndarray:
        """A uint8 view of [offset, offset + num_bytes), which must lie in the file as it was opened.

        Raises CorruptModel when the file has become shorter since: touching pages that are gone
        would end the process.
        """
        if offset + num_bytes > self.data.size():
            raise CorruptModel(
                f"{self.path.name}: had {self.size} bytes when opened and now has {self.data.size()}; "
                "load the model again once the file is whole"
            )
        return np.frombuffer(self.data, dtype=np.uint8, count=num_bytes, offset=offset)

    def close(self) -> None:
        """Let go of the file. Idempotent."""
        with contextlib.suppress(BufferError):  # a view is alive; the mapping goes with it
            self.data.close()
