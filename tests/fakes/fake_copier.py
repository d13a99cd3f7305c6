"""Carries out copy orders on a fake runner's pages, at once or some time later, and notices what must not happen.

A copy that runs beside steps reads its source when it is issued and again when it lands: nobody may have changed it in
between. Pages to be filled hold nothing until then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.core.config import SchedulerConfig
from engine.core.parked import CopyWay, PageCopy, Released
from fakes.fake_runner import FakeRunner, KvPage


class TornCopy(AssertionError):
    """Somebody wrote to pages, or to a buffer, while they were being copied."""


@dataclass(slots=True)
class FakeCopier:
    """`buffers[buffer_id]` holds a page per slot."""

    config: SchedulerConfig
    runner: FakeRunner
    buffers: dict[int, list[KvPage]] = field(default_factory=dict)
    under_way: dict[int, tuple[PageCopy, list[KvPage]]] = field(default_factory=dict)
    copied_pages: int = 0

    def issue(self, order: PageCopy) -> None:
        """Start a copy; one that must land is made at once, others wait for `land`."""
        if order.way is CopyWay.OUT:
            self._provide(order)
            seen = [list(self.runner.kv[page]) for page in order.pages]
        else:
            seen = [self._slot(order, index) for index in range(len(order.pages))]
            for page in order.pages:
                self.runner.kv[page] = [None] * self.config.page_tokens
        self.under_way[order.copy_id] = (order, seen)
        self.copied_pages += len(order.pages)
        if order.must_land:
            self.land(order.copy_id)

    def land(self, copy_id: int) -> PageCopy:
        """The copy is done."""
        order, seen = self.under_way.pop(copy_id)
        for index, page in enumerate(order.pages):
            if order.way is CopyWay.OUT:
                self._check(order, self.runner.kv[page], seen[index])
                buffer = self.buffers[order.saved[index].buffer_id]
                buffer[order.saved[index].slot] = list(seen[index])
            else:
                self._check(order, self._slot(order, index), seen[index])
                self._check(order, self.runner.kv[page], [None] * self.config.page_tokens)
                self.runner.kv[page] = list(seen[index])
                self.runner.committed.add(page)
        return order

    def fail(self, copy_id: int) -> None:
        """The copy is given up; what it was to fill holds nothing."""
        self.under_way.pop(copy_id)

    def give_back(self, released: Released) -> None:
        """Buffers are gone."""
        for buffer_id in released.buffer_ids:
            self.buffers.pop(buffer_id, None)

    def _provide(self, order: PageCopy) -> None:
        """Make the buffer of the order, or replace it by one of the size it asks for."""
        (buffer_id,) = {one.buffer_id for one in order.saved}
        slots = order.capacity_bytes // self.config.park.page_bytes
        assert max(one.slot for one in order.saved) < slots, f"{order} does not fit its buffer"
        if len(self.buffers.get(buffer_id, ())) != slots:
            self.buffers[buffer_id] = [[] for _ in range(slots)]

    def _slot(self, order: PageCopy, index: int) -> KvPage:
        saved = order.saved[index]
        return list(self.buffers[saved.buffer_id][saved.slot])

    def _check(self, order: PageCopy, now: KvPage, seen: KvPage) -> None:
        if now != seen:
            raise TornCopy(f"{order.request_ids}: {seen} became {now} while copied {order.way}")
