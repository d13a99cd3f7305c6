"""Copies pages of a pool to where they lie side by side, and back: natively, or by numpy where no kernels are.

A call lets go of the interpreter lock. Any thread may call; with the team, only the one that runs the steps. No torch.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.cpu.library import NativeLibrary, ThreadTeam

Bytes = NDArray[np.uint8]
"""Pages [pages, page_bytes], row-contiguous."""
Places = NDArray[np.int64]
"""Pages of a pool, row-contiguous."""


class PageMover(Protocol):
    """A way of copying. Raises ValueError, before a byte is written, for places outside the pool or other shapes."""

    def gather(self, pool: Bytes, places: Places, memory: Bytes, *, is_beside: bool) -> None:
        """Copy the pages at `places`, in their order, to `memory`. `is_beside`: while a step may run."""

    def scatter(self, memory: Bytes, pool: Bytes, places: Places, *, is_beside: bool) -> None:
        """Copy `memory` to the pages at `places`, no two of which are the same."""


class NumpyMover:
    """Implements `PageMover`, on the caller's thread."""

    def gather(self, pool: Bytes, places: Places, memory: Bytes, *, is_beside: bool) -> None:
        """See `PageMover`."""
        _check(pool, places, memory)
        np.take(pool, places, axis=0, out=memory, mode="clip")  # any other mode copies twice

    def scatter(self, memory: Bytes, pool: Bytes, places: Places, *, is_beside: bool) -> None:
        """See `PageMover`."""
        _check(pool, places, memory)
        pool[places] = memory


class NativeMover:
    """Implements `PageMover`, on all threads of the team where no step runs beside."""

    def __init__(self, library: NativeLibrary, team: ThreadTeam) -> None:
        self._copy = library.functions.layby_copy_pages
        self._team = team

    def gather(self, pool: Bytes, places: Places, memory: Bytes, *, is_beside: bool) -> None:
        """See `PageMover`."""
        _check(pool, places, memory)
        ends = (pool.ctypes.data, places.ctypes.data, memory.ctypes.data, None)
        self._copy(self._threads(is_beside=is_beside), *ends, *memory.shape)

    def scatter(self, memory: Bytes, pool: Bytes, places: Places, *, is_beside: bool) -> None:
        """See `PageMover`."""
        _check(pool, places, memory)
        ends = (memory.ctypes.data, None, pool.ctypes.data, places.ctypes.data)
        self._copy(self._threads(is_beside=is_beside), *ends, *memory.shape)

    def _threads(self, *, is_beside: bool) -> int | None:
        """The team, which is gone once it is closed; None: the caller alone."""
        return None if is_beside else self._team.handle or None


def _check(pool: Bytes, places: Places, memory: Bytes) -> None:
    if memory.shape != (len(places), pool.shape[1]):
        raise ValueError(
            f"{len(places)} pages of {pool.shape[1]} bytes do not fit memory of {memory.shape}"
        )
    for name, array, kind in (
        ("pool", pool, np.uint8),
        ("memory", memory, np.uint8),
        ("places", places, np.int64),
    ):
        if array.dtype != kind or not array.flags.c_contiguous:
            raise ValueError(f"{name} is not {np.dtype(kind)}, row-contiguous")
    if len(places) and not 0 <= places.min() <= places.max() < len(pool):
        raise ValueError(
            f"pages {places.min()} to {places.max()} are asked for, the pool has {len(pool)}"
        )
