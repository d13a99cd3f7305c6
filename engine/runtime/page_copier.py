"""Copies pages between the pool and host buffers: one buffer for each park, one gather or scatter for each order.

`PageCopier` runs on the engine thread. Copies that need not land before the step are made by its worker thread, with
numpy alone, which lets go of the interpreter lock meanwhile; only the engine thread calls torch.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch

from engine.core.parked import CopyWay, PageCopy, SavedPage
from engine.runtime.messages import CopyDone

Buffers = dict[int, np.ndarray]
"""Bytes [slots, page_bytes] by buffer id."""


class PageCopier:
    """Carries out orders. `deliver` is called on the worker's thread."""

    def __init__(self, pool: torch.Tensor, deliver: Callable[[CopyDone], object]) -> None:
        """`pool` has a page in each place of its first dimension."""
        self._pages = pool.view(len(pool), -1).view(torch.uint8)
        self._page_bytes = self._pages.shape[1]
        self._is_host = pool.device.type == "cpu"
        self._deliver = deliver
        self._buffers: Buffers = {}
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._worker: threading.Thread | None = None

    @property
    def num_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(buffer.nbytes for buffer in self._buffers.values())

    def carry_out(self, order: PageCopy) -> bool:
        """Make a copy that must land, or hand another to the worker. False: it cannot be made for want of memory."""
        try:
            if order.way is CopyWay.OUT:
                self._provide(order)
            if order.must_land:
                self._copy(order)
            else:
                self._hand_over(order)
        except MemoryError:
            return False
        return True

    def view_saved(self, saved: Iterable[SavedPage]) -> list[np.ndarray]:
        """The bytes of pages where they were copied to, as long as they are kept there."""
        return [self._buffers[one.buffer_id][one.slot] for one in saved]

    def give_back(self, buffer_ids: Iterable[int]) -> None:
        """Free buffers; one that was never made is passed over."""
        for buffer_id in buffer_ids:
            self._buffers.pop(buffer_id, None)

    def close(self) -> None:
        """Wait for the copies under way and free everything."""
        if self._worker is not None:
            self._tasks.put(None)
            self._worker.join()
        self._buffers.clear()

    # --- how

    def _provide(self, order: PageCopy) -> None:
        """Make the buffer of the order, or replace it by a larger one."""
        buffer_id = order.saved[0].buffer_id
        slots = order.capacity_bytes // self._page_bytes
        if buffer_id not in self._buffers or len(self._buffers[buffer_id]) < slots:
            self._buffers.pop(buffer_id, None)
            self._buffers[buffer_id] = np.empty((slots, self._page_bytes), np.uint8)

    def _hand_over(self, order: PageCopy) -> None:
        assert self._is_host, "a device's memory is copied by the engine thread"
        pages, parts = self._pages.numpy(), self._parts(order)

        def work() -> None:
            try:
                for part in parts:
                    _copy_on_host(order.way, pages, part)
            except MemoryError:
                self._deliver(CopyDone(self, order.copy_id, is_made=False))
            else:
                self._deliver(CopyDone(self, order.copy_id, is_made=True))

        if self._worker is None:
            self._worker = threading.Thread(target=self._run, name="layby-copies", daemon=True)
            self._worker.start()
        self._tasks.put(work)

    def _copy(self, order: PageCopy) -> None:
        for part in self._parts(order):
            if self._is_host:
                _copy_on_host(order.way, self._pages.numpy(), part)
            else:
                _copy_on_device(order.way, self._pages, part)

    def _parts(self, order: PageCopy) -> list[_Part]:
        """The order by buffers: coming back, a state may lie in several."""
        parts = []
        for buffer_id in dict.fromkeys(saved.buffer_id for saved in order.saved):
            ends = [
                (page, saved.slot)
                for page, saved in zip(order.pages, order.saved, strict=True)
                if saved.buffer_id == buffer_id
            ]
            pages, slots = np.array(ends, dtype=np.int64).T
            parts.append(_Part(self._buffers[buffer_id], pages, slots))
        return parts

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            task()


@dataclass(frozen=True, slots=True)
class _Part:
    """One buffer's share of an order: `pages[i]` and `slots[i]` are the two ends of one page."""

    buffer: np.ndarray
    pages: np.ndarray
    slots: np.ndarray

    @property
    def rows(self) -> np.ndarray | None:
        """The slots as one stretch of the buffer, if they are one."""
        first = int(self.slots[0])
        if np.array_equal(self.slots, np.arange(first, first + len(self.slots))):
            stretch: np.ndarray = self.buffer[first : first + len(self.slots)]
            return stretch
        return None


def _copy_on_host(way: CopyWay, pool: np.ndarray, part: _Part) -> None:
    rows = part.rows
    if way is CopyWay.OUT and rows is not None:
        np.take(pool, part.pages, axis=0, out=rows, mode="clip")  # any other mode copies twice
    elif way is CopyWay.OUT:
        part.buffer[part.slots] = pool[part.pages]
    else:
        pool[part.pages] = part.buffer[part.slots] if rows is None else rows


def _copy_on_device(way: CopyWay, pool: torch.Tensor, part: _Part) -> None:
    """One gather on the device and one transfer, or the other way round."""
    pages = torch.from_numpy(part.pages).to(pool.device)
    if way is CopyWay.OUT:
        part.buffer[part.slots] = pool.index_select(0, pages).cpu().numpy()
    else:
        rows = torch.from_numpy(part.buffer[part.slots]).to(pool.device)
        pool.index_copy_(0, pages, rows)
