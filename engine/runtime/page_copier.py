"""Copies pages between the pool and host buffers: one buffer for each park, one gather or scatter for each order.

`PageCopier` runs on the engine thread. Copies that need not land before the step run beside it: `copies.Copies` starts
them, a `CopyWorker` ends them and tells.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from engine.core.parked import CopyWay, PageCopy, SavedPage
from engine.runtime.copies import Copies, HostBuffer, stretches_of
from engine.runtime.copy_worker import COPY_FAILED, CopyWorker
from engine.runtime.host_copies import HostCopies
from engine.runtime.messages import CopyDone
from kernels.page_copy import PageMover

if TYPE_CHECKING:
    from engine.runtime.kv_arena import Pages

_LOG = logging.getLogger(__name__)


class PageCopier:
    """Carries out orders. `deliver` is called on the worker's thread, and on the caller's for what it had to await."""

    def __init__(self, copies: Copies, deliver: Callable[[CopyDone], object]) -> None:
        self._copies = copies
        self._deliver = deliver
        self._worker = CopyWorker()
        self._buffers: dict[int, HostBuffer] = {}
        self._awaited: list[str] = []

    @property
    def num_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(buffer.memory.nbytes for buffer in self._buffers.values())

    def carry_out(self, order: PageCopy) -> bool:
        """Make a copy that must land, or start another. False: it could not be made."""
        try:
            if order.way is CopyWay.OUT:
                self._provide(order)
            stretches = stretches_of(self._buffers, order.pages, order.saved)
            is_beside = not order.must_land and all(s.buffer.goes_beside for s in stretches)
            finish = self._copies.start(order.way, stretches, is_beside=is_beside)
            if order.must_land:
                finish()
            elif is_beside:
                self._worker.give(finish, partial(self._tell, order.copy_id))
            else:
                finish()
                self._awaited += order.request_ids
                self._tell(order.copy_id, is_made=True)
        except Exception as error:  # noqa: BLE001 - a device's own errors too: one request's state, not everybody's end
            _LOG.warning(COPY_FAILED, error)
            return False
        return True

    def take_awaited(self) -> tuple[str, ...]:
        """Requests whose copies were to run beside the steps and could not, their buffers not being pinned."""
        awaited, self._awaited = tuple(self._awaited), []
        return awaited

    def view_saved(self, saved: Iterable[SavedPage]) -> list[np.ndarray]:
        """The bytes of pages where they were copied to, as long as they are kept there."""
        return [self._buffers[one.buffer_id].memory[one.slot] for one in saved]

    def give_back(self, buffer_ids: Iterable[int]) -> None:
        """Free buffers; one that was never made is passed over."""
        for buffer_id in buffer_ids:
            buffer = self._buffers.pop(buffer_id, None)
            if buffer is not None:
                self._copies.free_buffer(buffer)

    def close(self) -> None:
        """Wait for the copies under way, free everything and let go of the pool."""
        self._worker.close()
        self.give_back(tuple(self._buffers))
        self._copies.close()

    # --- how

    def _provide(self, order: PageCopy) -> None:
        """Make the buffer of the order, or replace it by a larger one."""
        buffer_id = order.saved[0].buffer_id
        slots = order.capacity_bytes // self._copies.page_bytes
        if buffer_id not in self._buffers or len(self._buffers[buffer_id].memory) < slots:
            self.give_back((buffer_id,))
            self._buffers[buffer_id] = self._copies.make_buffer(slots)

    def _tell(self, copy_id: int, *, is_made: bool) -> None:
        self._deliver(CopyDone(self, copy_id, is_made=is_made))


def choose_copies(pool: Pages, mover: PageMover, *, is_async: bool) -> Copies:
    """The way of copying that the pool's device has: `mover`'s on the host. `is_async`: beside the steps, if it can."""
    if isinstance(pool, np.ndarray):
        return HostCopies(pool, mover)
    # Here and not above: they import torch.
    from engine.runtime.cuda_lane import CudaLane
    from engine.runtime.device_copies import DeviceCopies, StepLane

    beside = is_async and pool.device.type == "cuda"
    return DeviceCopies(pool, CudaLane(pool.device) if beside else StepLane(pool.device))
