"""Copies pages between a device's pool and host buffers, by way of a bounded buffer on the device. Engine thread.

Out, one gather fills the buffer and one transfer empties it; in, the other way round; longer states take turns with it.
A transfer of whole pages is left to the device's copy engine: a kernel that wrote to host memory by itself would take
multiprocessors from the steps for as long as the bus takes, a hundred times longer than the gather.

How work gets beside the steps, and memory pinned, is the affair of a `Lane`; nothing here is peculiar to CUDA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from engine.core.parked import CopyWay
from engine.runtime.copies import Finish, HostBuffer, Stretch, make_page_memory

_STAGING_BYTES = 32 << 20
"""Of the device's memory. A step's own small transfers may have to wait for one of this size: 0.6 ms at 50 GB/s."""
_WORD = torch.int64
"""What gathers move; every page is a multiple of it."""


class Fence(Protocol):
    """A mark in a device's work."""

    def synchronize(self) -> None:
        """Wait, without the interpreter lock, until all work before the mark is done. RuntimeError if it failed."""


class Lane(Protocol):
    """Where copies are issued."""

    def pin(self, memory: np.ndarray) -> bool:
        """Make host memory fit for transfers beside the steps; False where that is not possible."""

    def unpin(self, memory: np.ndarray) -> None:
        """Undo `pin`."""

    def upload(self, values: np.ndarray) -> Tensor:
        """Integers on the device, for work that is issued in the same call of `issue`."""

    def issue(self, work: Callable[[], None]) -> Fence:
        """Call `work`, which issues operations: they come after those of all steps so far, and hold up no later one."""


class DeviceCopies:
    """Implements `copies.Copies`."""

    def __init__(self, pool: Tensor, lane: Lane) -> None:
        """`pool` has a page in each place of its first dimension."""
        self._lane = lane
        self._pages = pool.view(len(pool), -1).view(_WORD)
        self.page_bytes = self._pages.shape[1] * _WORD.itemsize
        rows = max(1, min(_STAGING_BYTES // self.page_bytes, len(pool)))
        self._staging = self._pages.new_empty(rows, self._pages.shape[1])

    def make_buffer(self, slots: int) -> HostBuffer:
        """See `copies.Copies`. Pages of the system's own, which share none with anything else, so that they pin."""
        memory = make_page_memory(slots, self.page_bytes)
        return HostBuffer(memory, goes_beside=self._lane.pin(memory))

    def free_buffer(self, buffer: HostBuffer) -> None:
        """See `copies.Copies`. Memory that was unmapped while pinned could never be pinned again."""
        if buffer.goes_beside:
            self._lane.unpin(buffer.memory)

    def start(self, way: CopyWay, stretches: list[Stretch], *, is_beside: bool) -> Finish:
        """See `copies.Copies`. Whether something runs beside is the lane's affair."""

        def work() -> None:
            index = self._lane.upload(np.concatenate([stretch.pages for stretch in stretches]))
            for host, places in self._pieces(stretches, index):
                self._copy(way, host, places)

        try:
            return self._lane.issue(work).synchronize
        except torch.OutOfMemoryError as error:  # of the upload: nothing else takes memory
            raise MemoryError(str(error)) from error

    def close(self) -> None:
        """Let go of the pool."""
        self._pages = self._staging = torch.empty(0)

    # --- how

    def _pieces(
        self, stretches: list[Stretch], index: Tensor
    ) -> Iterator[tuple[tuple[Tensor, bool], Tensor]]:
        """Host memory (and whether it is pinned) with the places of its pages, as much as the staging buffer holds."""
        most, first = len(self._staging), 0
        for stretch in stretches:
            memory = torch.from_numpy(stretch.memory).view(_WORD)
            places = index[first : first + len(memory)]
            first += len(memory)
            for host, some in zip(
                torch.split(memory, most), torch.split(places, most), strict=True
            ):
                yield (host, stretch.buffer.goes_beside), some

    def _copy(self, way: CopyWay, host: tuple[Tensor, bool], places: Tensor) -> None:
        memory, is_pinned = host
        staged = self._staging[: len(places)]
        if way is CopyWay.OUT:
            torch.index_select(self._pages, 0, places, out=staged)
            memory.copy_(staged, non_blocking=is_pinned)
        else:
            staged.copy_(memory, non_blocking=is_pinned)
            self._pages.index_copy_(0, places, staged)


class StepLane:
    """The lane of steps themselves, for devices without another and where parks are to land within the step."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def pin(self, memory: np.ndarray) -> bool:
        """Never: every transfer is awaited where it is issued."""
        return False

    def unpin(self, memory: np.ndarray) -> None:
        """Nothing was pinned."""

    def upload(self, values: np.ndarray) -> Tensor:
        """See `Lane`."""
        return torch.from_numpy(values).to(self._device)

    def issue(self, work: Callable[[], None]) -> Fence:
        """See `Lane`."""
        work()
        return _Passed()


class _Passed:
    """A mark that needs no waiting: transfers were awaited, and steps stand behind the rest in the same queue."""

    def synchronize(self) -> None:
        """Return at once."""
