"""The likeliest tokens of rows of logits, found by the native kernels where they lie: what most samplers need of a row.

Belongs to the thread that runs the program. No torch, nothing of the engine.
"""

from __future__ import annotations

import ctypes
from array import array
from typing import NamedTuple

from kernels.cpu.declarations import MOST_LIKELIEST, LikeliestStruct


class Likeliest(NamedTuple):
    """The largest logits of a row, all above -inf, of equals those of the lower ids. Valid until the next run."""

    ids: memoryview[int]
    """Ascending."""
    logits: memoryview[float]
    """Of these ids; float64."""
    ranking: memoryview[int]
    """Places in `ids`, the likeliest first, of equals the lower id."""


class LikeliestRows:
    """Where the kernels put what they find, row by row. Plain memory: looking at it takes no array library."""

    def __init__(self, rows: int) -> None:
        places = rows * MOST_LIKELIEST
        self._counts = array("i", bytes(4 * rows))
        self._ids = array("i", bytes(4 * places))
        self._logits = array("d", bytes(8 * places))
        self._ranking = array("i", bytes(4 * places))
        logits = memoryview(self._logits).cast("B").cast("d")
        self._views = memoryview(self._ids), logits, memoryview(self._ranking)

    def struct(self) -> LikeliestStruct:
        """The places as the kernels see them; valid as long as this object."""
        arrays = (self._counts, self._ids, self._logits, self._ranking)
        return LikeliestStruct(*(ctypes.c_void_p(one.buffer_info()[0]) for one in arrays))

    def of(self, row: int) -> Likeliest | None:
        """What was found of a row; None where none were wanted, or one of its logits is NaN or +inf."""
        count = self._counts[row]
        if not count:
            return None
        ids, logits, ranking = self._views
        begin = row * MOST_LIKELIEST
        end = begin + count
        return Likeliest(ids[begin:end], logits[begin:end], ranking[begin:end])
