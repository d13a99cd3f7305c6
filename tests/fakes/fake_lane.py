"""A lane beside the steps as a device has it, on the CPU: what is issued happens when a fence is awaited, in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import torch


@dataclass(slots=True, eq=False)
class FakeFence:
    """Work that has been issued, and stands in the lane's queue until it has happened."""

    work: Callable[[], None]
    lane: FakeLane

    def synchronize(self) -> None:
        self.lane.work_off(self)


@dataclass(slots=True)
class FakeLane:
    """Implements `device_copies.Lane`. `pageable`: which of its pins fail, counted from 0."""

    pageable: Iterable[int] = ()
    pins: int = 0
    pinned: set[int] = field(default_factory=set)
    """Addresses."""
    queue: deque[FakeFence] = field(default_factory=deque)
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Two threads await fences; a device does one thing at a time all the same."""

    def pin(self, memory: np.ndarray) -> bool:
        address = memory.ctypes.data
        assert address not in self.pinned, "pinned twice"
        self.pins += 1
        if self.pins - 1 in self.pageable:
            return False
        self.pinned.add(address)
        return True

    def unpin(self, memory: np.ndarray) -> None:
        self.pinned.remove(memory.ctypes.data)

    def upload(self, values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values)

    def issue(self, work: Callable[[], None]) -> FakeFence:
        fence = FakeFence(work, self)
        with self.lock:
            self.queue.append(fence)
        return fence

    def work_off(self, fence: FakeFence) -> None:
        """Do all that was issued up to `fence`."""
        with self.lock:
            while fence in self.queue:
                self.queue.popleft().work()
