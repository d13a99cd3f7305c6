"""A lane beside the steps as a device has it, on the CPU: what is issued happens when its fence is awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import torch


@dataclass(slots=True)
class FakeFence:
    """Work that has been issued and has yet to happen."""

    work: Callable[[], None]

    def synchronize(self) -> None:
        self.work()


@dataclass(slots=True)
class FakeLane:
    """Implements `device_copies.Lane`. `pageable`: which of its pins fail, counted from 0."""

    pageable: Iterable[int] = ()
    pins: int = 0
    pinned: set[int] = field(default_factory=set)
    """Addresses."""

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
        return FakeFence(work)
