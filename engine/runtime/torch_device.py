"""Devices beside the CPU, as torch knows them, and a pool in their memory. Engine thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import numpy as np
import torch

from engine.api import Device


def available_devices() -> tuple[Device, ...]:
    """What AUTO chooses from, best first."""
    found = []
    if torch.cuda.is_available():
        found.append(Device.CUDA)
    if torch.backends.mps.is_available():
        found.append(Device.MPS)
    return (*found, Device.CPU)


def cuda_free_bytes() -> int:
    """Memory that can still be taken on the CUDA device."""
    return torch.cuda.mem_get_info()[0]


class DeviceArena:
    """Implements `kv_arena.Arena`: its memory is there from the beginning on."""

    def __init__(self, num_pages: int, page_bytes: int, device: Device) -> None:
        """Zeroed pages. Raises RuntimeError when there is not enough memory."""
        shape = (num_pages, page_bytes)
        self.pages = torch.zeros(shape, dtype=torch.uint8, device=device.value)

    def commit(self, pages: Iterable[int], free_bytes: Callable[[], int]) -> None:
        """Nothing to do."""

    def view(self, pages: Sequence[int]) -> list[np.ndarray]:
        """See `kv_arena.Arena`: copies."""
        return list(self.pages.index_select(0, self._index(pages)).cpu().numpy())

    def fill(self, pages: Sequence[int], content: np.ndarray) -> None:
        """See `kv_arena.Arena`."""
        memory = torch.from_numpy(content).to(self.pages.device)
        self.pages.index_copy_(0, self._index(pages), memory)

    def give_back(self, pages: Iterable[int]) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """See `kv_arena.Arena`. torch keeps what was freed, of weights too, until it is told."""
        self.pages = torch.empty(0)
        with suppress(RuntimeError):  # of a device that has failed for good
            torch.cuda.empty_cache()

    def _index(self, pages: Sequence[int]) -> torch.Tensor:
        return torch.tensor(pages, dtype=torch.int64, device=self.pages.device)
