"""The likeliest tokens of rows of logits, found by the native kernels where they lie: what most samplers need of a row.

Belongs to the thread that runs the program. No torch, nothing of the engine.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kernels.cpu.declarations import MOST_LIKELIEST, LikeliestStruct


class Likeliest(NamedTuple):
    """The largest logits of a row, all above -inf, of equals those of the lower ids."""

    ids: array[int]
    """Ascending."""
    logits: array[float]
    """Of these ids; float64."""
    ranking: array[int]
    """Places in `ids`, the likeliest first, of equals the lower id."""


class LikeliestRows:
    """Where the kernels put what they find, row by row. Plain arrays: a few numbers need no library to be read."""

    def __init__(self, rows: int) -> None:
        places = rows * MOST_LIKELIEST
        self._counts = array("i", bytes(4 * rows))
        self._ids = array("i", bytes(4 * places))
        self._logits = array("d", bytes(8 * places))
        self._ranking = array("i", bytes(4 * places))

    def struct(self) -> LikeliestStruct:
        """The places as the kernels see them; valid as long as this object."""
        arrays = (self._counts, self._ids, self._logits, self._ranking)
        return LikeliestStruct(*(one.buffer_info()[0] for one in arrays))

    def of_first(self, rows: int) -> list[Likeliest | None]:
        """What was found of the first rows; None where none were wanted, or one of the logits is NaN or +inf."""
        found: list[Likeliest | None] = []
        for row in range(rows):
            begin, count = row * MOST_LIKELIEST, self._counts[row]
            end = begin + count
            one = Likeliest(self._ids[begin:end], self._logits[begin:end], self._ranking[begin:end])
            found.append(one if count else None)
        return found
