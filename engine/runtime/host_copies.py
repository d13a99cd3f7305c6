"""Copies pages where the pool is host memory itself. Not the usual way there, where pages stay and change accounts.

All the copying is left to `Finish`: numpy alone, which lets go of the interpreter lock.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from engine.core.parked import CopyWay
from engine.runtime.copies import Finish, HostBuffer, Stretch

_MOST_WASTE = 2
"""A freed buffer is not used again for a park that needs less than the so-manieth part of it."""


class HostCopies:
    """Implements `copies.Copies`."""

    def __init__(self, pages: np.ndarray) -> None:
        """`pages` is [pages, page_bytes] bytes."""
        self._pages = pages
        self.page_bytes: int = pages.shape[1]
        self._spare = np.empty((0, self.page_bytes), np.uint8)
        """The buffer that was freed last: pages that the system has yet to provide take as long again as the copy."""

    def make_buffer(self, slots: int) -> HostBuffer:
        """See `copies.Copies`."""
        memory, self._spare = self._spare, self._spare[:0]
        if not slots <= len(memory) <= _MOST_WASTE * slots:
            memory = np.empty((slots, self.page_bytes), np.uint8)
        return HostBuffer(memory[:slots], goes_beside=True)

    def free_buffer(self, buffer: HostBuffer) -> None:
        """See `copies.Copies`. One buffer is kept for the next park."""
        self._spare = buffer.memory

    def start(self, way: CopyWay, stretches: list[Stretch]) -> Finish:
        """See `copies.Copies`."""
        return partial(_copy, way, self._pages, stretches)

    def close(self) -> None:
        """Let go of the pool and the spare buffer."""
        self._spare = self._pages = np.empty((0, self.page_bytes), np.uint8)


def _copy(way: CopyWay, pages: np.ndarray, stretches: list[Stretch]) -> None:
    """One gather or scatter for each stretch."""
    for stretch in stretches:
        if way is CopyWay.OUT:
            # any other mode copies twice
            np.take(pages, stretch.pages, axis=0, out=stretch.memory, mode="clip")
        else:
            pages[stretch.pages] = stretch.memory
