"""Copies on a stream of their own: bytes, order, and pinned memory."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from engine.api import Device
from engine.core.parked import CopyWay, PageCopy, SavedPage
from engine.runtime import device_copies
from engine.runtime.cuda_lane import CudaLane, can_pin
from engine.runtime.device_copies import DeviceCopies
from engine.runtime.messages import CopyDone
from engine.runtime.page_copier import PageCopier, choose_copies
from fakes.gpu import NEEDS_CUDA
from kernels.host_memory import reserve
from kernels.page_copy import NumpyMover

pytestmark = NEEDS_CUDA

PAGES, PAGE_BYTES = 600, 48 << 10
LONG = 200_000_000
"""Cycles of the device: a tenth of a second."""


class Rig:
    """A pool of random bytes on the device, and a copier."""

    def __init__(self, *, is_async: bool) -> None:
        words = torch.randint(0, 256, (PAGES, PAGE_BYTES), dtype=torch.uint8)
        self.pool = words.cuda()
        self.done: queue.SimpleQueue[CopyDone] = queue.SimpleQueue()
        self.copier = PageCopier(
            choose_copies(self.pool, NumpyMover(), is_async=is_async), self.done.put
        )

    def start(self, way: CopyWay, pages: list[int], buffer_id: int, *, must_land: bool) -> None:
        saved = tuple(SavedPage(buffer_id, slot) for slot in range(len(pages)))
        capacity = len(pages) * PAGE_BYTES
        order = PageCopy(buffer_id, way, ("a",), tuple(pages), saved, capacity, must_land)
        assert self.copier.carry_out(order)

    def copy(self, way: CopyWay, pages: list[int], buffer_id: int, *, must_land: bool) -> None:
        self.start(way, pages, buffer_id, must_land=must_land)
        if not must_land:
            self.land(buffer_id)

    def land(self, copy_id: int) -> None:
        assert self.done.get(timeout=60) == CopyDone(self.copier, copy_id, is_made=True)

    def saved(self, buffer_id: int) -> torch.Tensor:
        return torch.from_numpy(self.copier._buffers[buffer_id].memory)


@pytest.fixture
def beside() -> Iterator[Rig]:
    rig = Rig(is_async=True)
    yield rig
    torch.cuda.synchronize()
    rig.copier.close()


@pytest.mark.parametrize("must_land", [True, False])
@pytest.mark.parametrize("is_async", [True, False])
def test_pages_come_back_as_they_were(
    monkeypatch: pytest.MonkeyPatch, *, is_async: bool, must_land: bool
) -> None:
    monkeypatch.setattr(device_copies, "_STAGING_BYTES", 5 * PAGE_BYTES)
    rig = Rig(is_async=is_async)
    before = rig.pool.clone()
    pages = torch.randperm(PAGES).tolist()
    rig.copy(CopyWay.OUT, pages[:203], 1, must_land=must_land)
    assert torch.equal(rig.saved(1), before[pages[:203]].cpu())
    rig.pool.zero_()
    rig.copy(CopyWay.IN, pages[300:503], 1, must_land=must_land)
    assert torch.equal(rig.pool[pages[300:503]], before[pages[:203]])
    assert not rig.pool[pages[:300] + pages[503:]].any()
    assert rig.copier.take_awaited() == (() if is_async or must_land else ("a", "a"))
    rig.copier.close()


def test_a_copy_out_takes_what_the_steps_before_it_have_written(beside: Rig) -> None:
    pages = list(range(100))
    beside.pool[:100] = 3
    beside.copy(
        CopyWay.OUT, pages, 2, must_land=False
    )  # to pin memory, and to load kernels, may wait for the device
    torch.cuda._sleep(LONG)
    beside.pool[:100] = 7
    written = torch.cuda.Event()
    written.record()
    beside.start(CopyWay.OUT, pages, 2, must_land=False)
    assert not written.query(), "the engine thread did not wait for the steps"
    beside.land(2)
    assert (beside.saved(2) == 7).all()


def test_a_step_does_not_wait_for_a_copy(beside: Rig) -> None:
    """Copies are held up on their own stream, and a later kernel of the steps is done before them."""
    beside.copy(CopyWay.OUT, list(range(100)), 1, must_land=False)
    beside.copy(CopyWay.IN, list(range(100)), 1, must_land=False)
    copies = beside.copier._copies
    assert isinstance(copies, DeviceCopies)
    lane = copies._lane
    assert isinstance(lane, CudaLane)
    values = torch.zeros(1000, device="cuda")
    values += 1
    lane.issue(lambda: torch.cuda._sleep(LONG))
    beside.start(CopyWay.IN, list(range(200, 300)), 1, must_land=False)
    values += 1
    step = torch.cuda.Event()
    step.record()
    step.synchronize()
    assert beside.done.empty()
    beside.land(1)
    assert torch.equal(beside.pool[200:300], beside.pool[:100])
    assert values.sum().item() == 2000


def test_a_copy_that_must_land_has_landed(beside: Rig) -> None:
    torch.cuda._sleep(LONG)
    beside.pool[:100] = 9
    beside.start(CopyWay.OUT, list(range(100)), 1, must_land=True)
    assert (beside.saved(1) == 9).all()


def test_many_copies_under_way_land_in_order(beside: Rig) -> None:
    before = beside.pool.clone()
    for number in range(50):
        pages = [(7 * number + i) % PAGES for i in range(40)]
        beside.start(CopyWay.OUT, pages, number, must_land=False)
    for number in range(50):
        beside.land(number)
        pages = [(7 * number + i) % PAGES for i in range(40)]
        assert torch.equal(beside.saved(number), before[pages].cpu())


def test_memory_is_pinned_and_unpinned_and_a_failure_leaves_nothing_behind() -> None:
    device = torch.device("cuda")
    assert can_pin(Device.CUDA)
    lane, memory = CudaLane(device), np.frombuffer(reserve(1 << 20), np.uint8)
    for _ in range(3):
        assert lane.pin(memory)
        assert torch.from_numpy(memory).is_pinned()
        assert not lane.pin(memory), "it is pinned already"
        assert torch.ones(8, device=device).sum().item() == 8
        lane.unpin(memory)
        assert not torch.from_numpy(memory).is_pinned()


def test_buffers_are_pinned_as_long_as_they_are_there(beside: Rig) -> None:
    for pages in (10, 100, 50):
        beside.copy(CopyWay.OUT, list(range(pages)), 1, must_land=False)
        assert beside.saved(1).is_pinned()
    assert beside.copier.num_bytes == 100 * PAGE_BYTES
    beside.copier.give_back([1])
    assert beside.copier.num_bytes == 0
