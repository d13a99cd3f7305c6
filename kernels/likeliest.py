"""The likeliest tokens of rows of logits, found by the native kernels where they lie: what most samplers need of a row.

Belongs to the thread that runs the program. No torch, nothing of the engine.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.cpu.declarations import MOST_LIKELIEST, LikeliestStruct


class Likeliest(NamedTuple):
    """The largest logits of a row, all above -inf; of equals those of the lower ids. Valid until the next run."""

    ids: NDArray[np.int32]
    """Ascending."""
    logits: NDArray[np.float64]
    """Of these ids."""
    ranking: NDArray[np.int32]
    """Places in `ids`, the likeliest first, of equals the lower id."""


class LikeliestRows:
    """Where the kernels put what they find, row by row."""

    def __init__(self, rows: int) -> None:
        self._counts = np.zeros(rows, np.int32)
        self._ids = np.zeros((rows, MOST_LIKELIEST), np.int32)
        self._logits = np.zeros((rows, MOST_LIKELIEST), np.float64)
        self._ranking = np.zeros((rows, MOST_LIKELIEST), np.int32)

    def struct(self) -> LikeliestStruct:
        """The places as the kernels see them; valid as long as this object."""
        arrays = (self._counts, self._ids, self._logits, self._ranking)
        return LikeliestStruct(*(ctypes.c_void_p(array.ctypes.data) for array in arrays))

    def of(self, row: int) -> Likeliest | None:
        """What was found of a row; None where none were wanted, or one of its logits is NaN or +inf."""
        count = int(self._counts[row])
        if not count:
            return None
        return Likeliest(
            self._ids[row, :count], self._logits[row, :count], self._ranking[row, :count]
        )
