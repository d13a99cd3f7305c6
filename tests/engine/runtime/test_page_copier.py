"""Pages out of the pool and back, byte for byte, at once or beside the steps."""

from __future__ import annotations

import queue
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from engine.core.parked import CopyWay, PageCopy, SavedPage
from engine.runtime import page_copier
from engine.runtime.messages import CopyDone
from engine.runtime.page_copier import PageCopier

PAGES, VALUES = 40, 96
PAGE_BYTES = 2 * VALUES


class Rig:
    """A pool of random bytes and a copier."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(0)
        self.pool = torch.from_numpy(self.random.random((PAGES, 3, VALUES // 3)).astype(np.float16))
        self.done: queue.SimpleQueue[CopyDone] = queue.SimpleQueue()
        self.copier = PageCopier(self.pool, self.done.put)

    def copy(self, order: PageCopy) -> None:
        """Carry it out, and wait for it."""
        assert self.copier.carry_out(order)
        if not order.must_land:
            done = self.done.get(timeout=60)
            assert done == CopyDone(self.copier, order.copy_id, is_made=True)


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.copier.close()


def order(
    way: CopyWay, pages: list[int], saved: list[SavedPage], *, must_land: bool, slots: int = 0
) -> PageCopy:
    capacity = max(slots, len(pages)) * PAGE_BYTES
    return PageCopy(1, way, ("a",), tuple(pages), tuple(saved), capacity, must_land)


@pytest.mark.parametrize("must_land", [True, False])
def test_pages_come_back_as_they_were_wherever_they_come_back_to(
    rig: Rig, *, must_land: bool
) -> None:
    before = rig.pool.clone()
    first, second = [3, 39, 0, 17], [5, 6]
    saved = [SavedPage(7, slot) for slot in range(4)], [SavedPage(8, slot) for slot in (1, 0)]
    rig.copy(order(CopyWay.OUT, first, saved[0], must_land=must_land))
    rig.copy(order(CopyWay.OUT, second, saved[1], must_land=must_land, slots=9))
    assert rig.copier.num_bytes == (4 + 9) * PAGE_BYTES
    rig.pool.fill_(-1)
    places = [30, 2, 11, 12, 20, 1]
    rig.copy(order(CopyWay.IN, places, [*saved[0], *saved[1]], must_land=must_land))
    assert torch.equal(rig.pool[places], before[first + second])
    others = [page for page in range(PAGES) if page not in places]
    assert (rig.pool[others] == -1).all()


def test_part_of_a_state_can_come_back(rig: Rig) -> None:
    before = rig.pool.clone()
    saved = [SavedPage(1, slot) for slot in range(5)]
    rig.copy(order(CopyWay.OUT, [0, 1, 2, 3, 4], saved, must_land=True))
    rig.copy(order(CopyWay.IN, [10, 11], [saved[4], saved[2]], must_land=True))
    assert torch.equal(rig.pool[[10, 11]], before[[4, 2]])


def test_a_buffer_is_replaced_by_a_larger_one_and_kept_otherwise(rig: Rig) -> None:
    one = [SavedPage(1, 0)]
    for slots, held in ((2, 2), (1, 2), (6, 6)):
        rig.copy(order(CopyWay.OUT, [0], one, must_land=True, slots=slots))
        assert rig.copier.num_bytes == held * PAGE_BYTES
    rig.copier.give_back([1, 99])
    assert rig.copier.num_bytes == 0


def test_memory_that_runs_out_on_the_way_is_told(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(page_copier, "_copy_on_host", no_memory)
    assert not rig.copier.carry_out(order(CopyWay.OUT, [0], [SavedPage(1, 0)], must_land=True))
    assert rig.copier.carry_out(order(CopyWay.OUT, [0], [SavedPage(1, 0)], must_land=False))
    assert not rig.done.get(timeout=60).is_made


def test_a_device_gathers_and_scatters_the_same_bytes() -> None:
    random = np.random.default_rng(1)
    pool = torch.from_numpy(random.integers(0, 256, (PAGES, PAGE_BYTES), np.uint8))
    on_host, on_device = pool.clone(), pool.clone()
    buffers = [np.zeros((6, PAGE_BYTES), np.uint8) for _ in range(2)]
    pages, slots = np.array([9, 4, 30]), np.array([5, 0, 2])
    for way in CopyWay:
        page_copier._copy_on_host(way, on_host.numpy(), page_copier._Part(buffers[0], pages, slots))
        page_copier._copy_on_device(way, on_device, page_copier._Part(buffers[1], pages, slots))
        pages = pages[::-1].copy()
    assert torch.equal(on_host, on_device)
    assert not torch.equal(on_host, pool)
    assert np.array_equal(*buffers)
