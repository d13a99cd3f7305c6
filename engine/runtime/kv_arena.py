"""The memory behind page ids. Engine thread.

One tensor holds all pages, one after the other: [arena_pages, layers, 2, page_tokens, kv_heads, head_dim], float16 or
float32. A page is therefore one stretch of `bytes_per_page` bytes that holds `page_tokens` positions of every layer,
keys before values:

    byte = ((((page * layers + layer) * 2 + kind) * page_tokens + offset) * kv_heads + head) * head_dim * size + ...

with kind 0 for keys (after rotation) and 1 for values. A page may be copied as bytes, to another place or out and back.
All that is ever in a page is finite: it starts as zeros and only finite numbers are written.

On the CPU the arena is address space for the pool and for what is parked in place. The system puts memory behind a page
when it is first written, and takes it back after `give_back`.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Iterable

import numpy as np
import torch

from engine.api import KvType
from engine.core.config import PAGE_TOKENS
from engine.models.spec import ModelSpec

_NUMPY_TYPES = {KvType.F16: np.float16, KvType.F32: np.float32}
_KEPT_FREE_BYTES = 64 << 20
"""Left to the system when memory is put behind pages."""


def bytes_per_page(spec: ModelSpec, kv_type: KvType) -> int:
    """Bytes of one page: every layer's keys and values of `PAGE_TOKENS` positions."""
    values = spec.layers * 2 * PAGE_TOKENS * spec.kv_heads * spec.head_dim
    return values * np.dtype(_NUMPY_TYPES[kv_type]).itemsize


class KvArena:
    """All pages as `tensor`. Without `mapping` their memory is there from the beginning to the end."""

    def __init__(self, tensor: torch.Tensor, mapping: mmap.mmap | None) -> None:
        self.tensor = tensor
        self._mapping = mapping
        self._page_bytes = tensor[0].nbytes
        self._is_committed = np.full(len(tensor), mapping is None)

    @staticmethod
    def allocate(spec: ModelSpec, num_pages: int, kv_type: KvType, device: torch.device) -> KvArena:
        """Zeroed pages; on the CPU address space for them.

        Raises MemoryError, OSError or RuntimeError when there is not enough.
        """
        shape = (num_pages, spec.layers, 2, PAGE_TOKENS, spec.kv_heads, spec.head_dim)
        kind = np.dtype(_NUMPY_TYPES[kv_type])
        if device.type != "cpu":
            empty = torch.from_numpy(np.empty(0, kind))
            tensor = torch.zeros(shape, dtype=empty.dtype, device=device)
            return KvArena(tensor, None)
        mapping = _reserve(num_pages * bytes_per_page(spec, kv_type))
        tensor = torch.from_numpy(np.frombuffer(mapping, kind).reshape(shape))
        return KvArena(tensor, mapping)

    def commit(self, pages: Iterable[int], free_bytes: Callable[[], int]) -> None:
        """See to it that memory can be put behind `pages`, which are about to be written.

        `free_bytes` tells what the system has left, and is only asked where new memory is needed.
        Raises MemoryError, and nothing has changed, when the system has too little left. Systems that promise more
        than they have would end the whole process at the first write instead.
        """
        new = [page for page in pages if not self._is_committed[page]]
        if not new:
            return
        free = free_bytes()
        if len(new) * self._page_bytes + _KEPT_FREE_BYTES > free:
            raise MemoryError(
                f"{len(new)} pages of {self._page_bytes:,} bytes, {free:,} bytes are free"
            )
        self._is_committed[new] = True

    def give_back(self, pages: Iterable[int]) -> None:
        """Return the memory of pages whose content is worthless, in as few calls as there are stretches of them."""
        advice = _give_back_advice()
        if self._mapping is None or advice is None:
            return
        for first, last in _stretches(sorted(pages)):
            self._is_committed[first:last] = False
            start = -(-first * self._page_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
            end = last * self._page_bytes // mmap.PAGESIZE * mmap.PAGESIZE
            if start < end:
                self._mapping.madvise(advice, start, end - start)


def _reserve(num_bytes: int) -> mmap.mmap:
    """Private zeroed memory that is not there before it is written; shared memory would not be taken back."""
    if sys.platform == "win32":
        return mmap.mmap(-1, num_bytes)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    return mmap.mmap(-1, num_bytes, flags=flags)


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
