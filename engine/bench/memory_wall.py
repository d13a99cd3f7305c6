"""How fast this machine reads and copies memory with as many threads as compute: the wall that decoding runs into.

numpy lets go of the interpreter lock while it looks for a largest number or copies, so that Python's threads do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

_WALL_BYTES = 1 << 30
"""Far beyond every cache."""


@dataclass(frozen=True, slots=True)
class MemoryWall:
    """The best of several tries, in bytes a second: others on the machine can only make it less."""

    read_bytes_s: float
    copy_bytes_s: float
    """Bytes copied, each counted once."""


def measure_memory_wall(threads: int, *, tries: int, size: int = _WALL_BYTES) -> MemoryWall:
    """Raises MemoryError where there is no room for `size` bytes and half as many."""
    # Numbers that count up: a system may keep pages of zeros, or of one value, once.
    source = np.arange(size // 8, dtype=np.int64)
    target = np.empty(len(source) // 2, dtype=np.int64)
    target[:] = 1  # memory is there before it is measured
    parts = np.array_split(source, threads)
    halves = np.array_split(source[: len(target)], threads)
    targets = np.array_split(target, threads)
    with ThreadPoolExecutor(threads) as pool:
        read_s = _best(lambda: list(pool.map(np.max, parts)), tries)
        copy_s = _best(lambda: list(pool.map(np.copyto, targets, halves)), tries)
    return MemoryWall(source.nbytes / read_s, target.nbytes / copy_s)


def _best(work: Callable[[], object], tries: int) -> float:
    seconds = []
    for _ in range(tries):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
