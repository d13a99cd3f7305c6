"""What the two ways of copying pages share: host buffers, stretches of them, and the interface. No tensor library.

`host_copies` copies where the pool is host memory, `device_copies` between a device and its host; `page_copier` is the
front of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.core.parked import CopyWay, SavedPage
from kernels.host_memory import reserve

Finish = Callable[[], None]
"""Does or awaits the rest of a copy; raises MemoryError or RuntimeError where it could not be made."""


@dataclass(frozen=True, slots=True)
class HostBuffer:
    """Where one park's pages go."""

    memory: np.ndarray
    """Bytes [slots, page_bytes]."""
    goes_beside: bool
    """Whether it can be copied to and from while steps run."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Slots side by side in one buffer, and the page of the pool that belongs to each."""

    buffer: HostBuffer
    first: int
    pages: np.ndarray
    """int64"""

    @property
    def memory(self) -> np.ndarray:
        """The bytes of the slots, [pages, page_bytes]."""
        slots: np.ndarray = self.buffer.memory[self.first : self.first + len(self.pages)]
        return slots


class Copies(Protocol):
    """A way of copying pages. Engine thread."""

    @property
    def page_bytes(self) -> int: ...

    def make_buffer(self, slots: int) -> HostBuffer:
        """Memory of exactly that size. Raises MemoryError."""

    def free_buffer(self, buffer: HostBuffer) -> None:
        """Give its memory back; no copy uses it."""

    def start(self, way: CopyWay, stretches: list[Stretch], *, is_beside: bool) -> Finish:
        """Start one copy, after the work of all steps so far; what is returned ends it.

        `is_beside`: it is ended on any thread, while steps may run; else at once by who starts it. Raises MemoryError,
        with nothing under way. It has all happened when `Finish` has returned.
        """

    def close(self) -> None:
        """Let go of the pool; no copy is under way."""


def make_page_memory(slots: int, page_bytes: int) -> np.ndarray:
    """Bytes [slots, page_bytes] in pages of the system's own, which are there once they are written. MemoryError."""
    try:
        return np.frombuffer(reserve(slots * page_bytes), np.uint8).reshape(slots, page_bytes)
    except (OSError, OverflowError) as error:
        raise MemoryError(str(error)) from error


def stretches_of(
    buffers: dict[int, HostBuffer], pages: Iterable[int], saved: Iterable[SavedPage]
) -> list[Stretch]:
    """An order as few stretches: mostly one, as a park fills a buffer from its beginning."""
    found: list[tuple[int, int, list[int]]] = []
    last = None
    for (buffer_id, slot), page in sorted(zip(saved, pages, strict=True)):
        if last == (buffer_id, slot - 1):
            found[-1][2].append(page)
        else:
            found.append((buffer_id, slot, [page]))
        last = (buffer_id, slot)
    return [
        Stretch(buffers[buffer_id], first, np.array(places, np.int64))
        for buffer_id, first, places in found
    ]
