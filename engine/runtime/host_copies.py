"""Copies pages where the pool is host memory itself. Not the usual way there, where pages stay and change accounts.

All the copying is left to `Finish`, which lets go of the interpreter lock.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from engine.core.parked import CopyWay
from engine.runtime.copies import Finish, HostBuffer, Stretch, make_page_memory
from kernels.page_copy import PageMover

_MOST_WASTE = 2
"""A freed buffer is not used again for a park that needs less than the so-manieth part of it."""


class HostCopies:
    """Implements `copies.Copies`."""

    def __init__(self, pages: np.ndarray, mover: PageMover) -> None:
        """`pages` is [pages, page_bytes] bytes. `mover` copies them."""
        self._pages = pages
        self._mover = mover
        self.page_bytes: int = pages.shape[1]
        self._spare = np.empty((0, self.page_bytes), np.uint8)
        """The buffer that was freed last: memory that the system has yet to provide takes longer than the copy."""
        self._untouched: HostBuffer | None = None
        """The buffer that was made last, until something is copied to it."""

    def make_buffer(self, slots: int) -> HostBuffer:
        """See `copies.Copies`."""
        memory, self._spare = self._spare, self._spare[:0]
        if slots <= len(memory) <= _MOST_WASTE * slots:
            return HostBuffer(memory[:slots], goes_beside=True)
        self._untouched = HostBuffer(make_page_memory(slots, self.page_bytes), goes_beside=True)
        return self._untouched

    def free_buffer(self, buffer: HostBuffer) -> None:
        """See `copies.Copies`. One buffer is kept for the next park."""
        self._spare = buffer.memory

    def start(self, way: CopyWay, stretches: list[Stretch], *, is_beside: bool) -> Finish:
        """See `copies.Copies`."""
        if way is CopyWay.IN:
            return partial(self._copy_in, self._pages, stretches, is_beside=is_beside)
        untouched, self._untouched = self._untouched, None
        if not any(stretch.buffer is untouched for stretch in stretches):
            untouched = None  # of an order that came to nothing: whose it is by now, nobody knows
        return partial(self._copy_out, self._pages, stretches, untouched, is_beside=is_beside)

    def close(self) -> None:
        """Let go of the pool and the spare buffer."""
        self._spare = self._pages = np.empty((0, self.page_bytes), np.uint8)
        self._untouched = None

    # --- how, on any thread

    def _copy_out(
        self,
        pages: np.ndarray,
        stretches: list[Stretch],
        untouched: HostBuffer | None,
        *,
        is_beside: bool,
    ) -> None:
        """One gather for each stretch. The rest of a new buffer is there afterwards too: larger parks will need it."""
        written = 0
        for stretch in stretches:
            self._mover.gather(pages, stretch.pages, stretch.memory, is_beside=is_beside)
            if stretch.buffer is untouched:
                written = max(written, stretch.first + len(stretch.pages))
        if untouched is not None:
            untouched.memory[written:] = 0

    def _copy_in(self, pages: np.ndarray, stretches: list[Stretch], *, is_beside: bool) -> None:
        """One scatter for each stretch."""
        for stretch in stretches:
            self._mover.scatter(stretch.memory, pages, stretch.pages, is_beside=is_beside)
