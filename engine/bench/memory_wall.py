"""How fast this machine reads and copies memory with as many threads as compute: the wall that decoding runs into.

numpy lets go of the interpreter lock while it joins bits or copies, so that Python's threads do. Copies are made by the
native kernels too where they are there, which write past the caches; the wall is the faster of both. Read so, memory
gives what it gives a loop in C++ with prefetches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType

import numpy as np

from kernels.cpu.library import NativeUnavailable, ThreadTeam, load_library
from kernels.page_copy import NativeMover

_WALL_BYTES = 1 << 30
"""Far beyond every cache."""
_PAGE_BYTES = 1 << 17
"""What is copied is a multiple of so much."""


class MemoryWall:
    """Memory to read and to copy. Speeds are bytes a second, the best of some tries: others can only make it less.

    What is set beside them is best measured between two of them: speeds of machines change within seconds.
    """

    def __init__(self, threads: int, *, size: int = _WALL_BYTES) -> None:
        """Raises MemoryError where there is no room for `size` bytes and half as many."""
        # Numbers that count up: a system may keep pages of zeros, or of one value, once.
        source = np.arange(size // 8, dtype=np.int64)
        half = size // 16 // (_PAGE_BYTES // 8) * (_PAGE_BYTES // 8)
        self._source, self._target = source[:half], np.empty(half, dtype=np.int64)
        self._target[:] = 1  # memory is there before it is measured
        self._parts = np.array_split(source, threads)
        self._ends = (
            np.array_split(self._target, threads),
            np.array_split(self._source, threads),
        )
        self._open = ExitStack()
        self._pool = self._open.enter_context(ThreadPoolExecutor(threads))
        self._copies = [self._copy_by_numpy]
        try:
            library = load_library()
        except NativeUnavailable:
            return
        self._mover = NativeMover(library, self._open.enter_context(ThreadTeam(library, threads)))
        self._copies.append(self._copy_natively)

    def read_bytes_s(self, tries: int) -> float:
        """How fast memory is read."""
        join = np.bitwise_or.reduce
        num_bytes = sum(part.nbytes for part in self._parts)
        return num_bytes / _best(lambda: list(self._pool.map(join, self._parts)), tries)

    def copy_bytes_s(self, tries: int) -> float:
        """How fast memory is copied; bytes copied count once."""
        return self._target.nbytes / min(_best(copy, tries) for copy in self._copies)

    def close(self) -> None:
        """Stop the threads."""
        self._open.close()

    def __enter__(self) -> MemoryWall:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _copy_by_numpy(self) -> None:
        for _ in self._pool.map(np.copyto, *self._ends):
            pass

    def _copy_natively(self) -> None:
        source, target = (
            one.view(np.uint8).reshape(-1, _PAGE_BYTES) for one in (self._source, self._target)
        )
        places = np.arange(len(source), dtype=np.int64)
        self._mover.gather(source, places, target, is_beside=False)


def _best(work: Callable[[], object], tries: int) -> float:
    """Seconds of the fastest try."""
    seconds = []
    for _ in range(tries):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
