"""The memory behind page ids. Engine thread.

A page is `page_bytes` opaque bytes that hold PAGE_TOKENS positions of every layer; what lies where is the back end's
own affair. So a page may be copied as bytes, to another place or out and back. It starts as zeros.

On the CPU the arena is address space for the pool and for what is parked in place. The system puts memory behind a page
when it is first written, and takes it back after `give_back`.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from kernels.host_memory import reserve

if TYPE_CHECKING:
    from torch import Tensor

    Pages = np.ndarray | Tensor
    """[num_pages, page_bytes] bytes: an array in host memory, a tensor on another device."""

_KEPT_FREE_BYTES = 64 << 20
"""Left to the system when memory is put behind pages."""
_MOST_AHEAD_BYTES = 16 << 20
"""For so much an answer of the system holds: asking takes a millisecond where others wait for the interpreter lock."""


class Arena(Protocol):
    """A pool's memory; `KvArena` on the CPU, `torch_device.DeviceArena` elsewhere."""

    @property
    def pages(self) -> Pages: ...

    def commit(self, pages: Iterable[int], free_bytes: Callable[[], int]) -> None:
        """See `KvArena.commit`."""

    def view(self, pages: Sequence[int]) -> list[np.ndarray]:
        """The bytes of each page: where they lie if that is host memory, else copies."""

    def fill(self, pages: Sequence[int], content: np.ndarray) -> None:
        """Write bytes [pages, page_bytes] into pages that have been committed."""

    def give_back(self, pages: Iterable[int]) -> None:
        """Return the memory of pages whose content is worthless, if that is possible."""

    def close(self) -> None:
        """Let go of the memory. Weights and everything else of the model have been freed before."""


class KvArena:
    """All pages as `pages` [num_pages, page_bytes], in host memory."""

    def __init__(self, num_pages: int, mapping: mmap.mmap) -> None:
        self.pages = np.frombuffer(mapping, np.uint8).reshape(num_pages, -1)
        self._mapping = mapping
        self._page_bytes = self.pages.shape[1]
        self._is_committed = bytearray(num_pages)
        self._ahead_bytes = 0
        """What the system was found to have left for pages still to come."""

    @staticmethod
    def allocate(num_pages: int, page_bytes: int) -> KvArena:
        """Address space for zeroed pages. Raises MemoryError or OSError when there is not enough."""
        return KvArena(num_pages, reserve(num_pages * page_bytes))

    def commit(self, pages: Iterable[int], free_bytes: Callable[[], int]) -> None:
        """See to it that memory can be put behind `pages`, which are about to be written.

        `free_bytes` tells what the system has left, and is only asked where more new memory is needed than the latest
        answer holds for.
        Raises MemoryError, and nothing has changed, when the system has too little left. Systems that promise more
        than they have would end the whole process at the first write instead.
        """
        new = [page for page in pages if not self._is_committed[page]]
        if not new:
            return
        needed = len(new) * self._page_bytes
        if needed > self._ahead_bytes:
            free = free_bytes()
            left = free - needed - _KEPT_FREE_BYTES
            if left < 0:
                raise MemoryError(
                    f"{len(new)} pages of {self._page_bytes:,} bytes, {free:,} bytes are free"
                )
            self._ahead_bytes = needed + min(left, _MOST_AHEAD_BYTES)
        self._ahead_bytes -= needed
        for page in new:
            self._is_committed[page] = True

    def view(self, pages: Sequence[int]) -> list[np.ndarray]:
        """See `Arena`."""
        return [self.pages[page] for page in pages]

    def fill(self, pages: Sequence[int], content: np.ndarray) -> None:
        """See `Arena`."""
        self.pages[list(pages)] = content

    def give_back(self, pages: Iterable[int]) -> None:
        """Return the memory of pages whose content is worthless, in as few calls as there are stretches of them."""
        advice = _give_back_advice()
        if advice is None:
            return
        for first, last in _stretches(sorted(pages)):
            self._is_committed[first:last] = bytes(last - first)
            start = -(-first * self._page_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
            end = last * self._page_bytes // mmap.PAGESIZE * mmap.PAGESIZE
            if start < end:
                self._mapping.madvise(advice, start, end - start)

    def close(self) -> None:
        """The memory goes with the last that looks at `pages`."""
        self.pages = self.pages[:0].copy()


def _give_back_advice() -> int | None:
    """How the system is told that memory is not needed: on macOS MADV_DONTNEED keeps it; Windows has no such call."""
    name = "MADV_FREE" if sys.platform == "darwin" else "MADV_DONTNEED"
    return getattr(mmap, name, None)


def _stretches(pages: list[int]) -> list[tuple[int, int]]:
    """Half-open ranges of pages that lie side by side, given in ascending order."""
    ranges: list[tuple[int, int]] = []
    for page in pages:
        if ranges and ranges[-1][1] == page:
            ranges[-1] = (ranges[-1][0], page + 1)
        else:
            ranges.append((page, page + 1))
    return ranges
