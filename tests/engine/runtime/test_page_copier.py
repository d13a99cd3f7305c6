"""Pages out of the pool and back, byte for byte, at once or beside the steps, on the host and on a device."""

from __future__ import annotations

import gc
import queue
import weakref
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from engine.core.parked import CopyWay, PageCopy, SavedPage
from engine.runtime import device_copies
from engine.runtime.copies import Copies, Stretch, stretches_of
from engine.runtime.device_copies import DeviceCopies, StepLane
from engine.runtime.host_copies import HostCopies
from engine.runtime.messages import CopyDone
from engine.runtime.page_copier import PageCopier, choose_copies
from fakes.fake_lane import FakeLane
from kernels.page_copy import NumpyMover

PAGES, VALUES = 40, 96
PAGE_BYTES = 2 * VALUES


def _bytes_of(pool: torch.Tensor) -> np.ndarray:
    return pool.view(len(pool), -1).view(torch.uint8).numpy()


WAYS: dict[str, Callable[[torch.Tensor], Copies]] = {
    "on the host": lambda pool: HostCopies(_bytes_of(pool), NumpyMover()),
    "in a device's steps": lambda pool: DeviceCopies(pool, StepLane(pool.device)),
    "beside a device's steps": lambda pool: DeviceCopies(pool, FakeLane()),
    "beside, not pinned": lambda pool: DeviceCopies(pool, FakeLane(pageable=range(99))),
}


class Rig:
    """A pool of random bytes and a copier."""

    def __init__(self, make: Callable[[torch.Tensor], Copies]) -> None:
        self.random = np.random.default_rng(0)
        self.pool = torch.from_numpy(self.random.random((PAGES, 3, VALUES // 3)).astype(np.float16))
        self.done: queue.SimpleQueue[CopyDone] = queue.SimpleQueue()
        self.copies = make(self.pool)
        self.copier = PageCopier(self.copies, self.done.put)

    def copy(self, order: PageCopy) -> None:
        """Carry it out, and wait for it."""
        assert self.copier.carry_out(order)
        if not order.must_land:
            done = self.done.get(timeout=60)
            assert done == CopyDone(self.copier, order.copy_id, is_made=True)


@pytest.fixture(params=WAYS)
def rig(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(device_copies, "_STAGING_BYTES", 3 * PAGE_BYTES)
    rig = Rig(WAYS[request.param])
    yield rig
    rig.copier.close()
    assert rig.copier.num_bytes == 0


def order(
    way: CopyWay, pages: list[int], saved: list[SavedPage], *, must_land: bool, slots: int = 0
) -> PageCopy:
    capacity = max(slots, len(pages)) * PAGE_BYTES
    return PageCopy(1, way, ("a",), tuple(pages), tuple(saved), capacity, must_land)


def test_all_of_a_new_buffer_is_written_with_the_first_park_and_never_again() -> None:
    pool = np.full((4, 8), 7, np.uint8)
    copies = HostCopies(pool, NumpyMover())
    buffer = copies.make_buffer(5)
    buffer.memory[:] = 9
    for number, expected in ((2, [7, 7, 0, 0, 0]), (1, [7, 7, 5, 5, 5])):
        stretch = Stretch(buffer, 0, np.arange(number, dtype=np.int64))
        copies.start(CopyWay.OUT, [stretch], is_beside=False)()
        assert buffer.memory[:, 0].tolist() == expected
        buffer.memory[2:] = 5


def test_a_buffer_whose_park_came_to_nothing_serves_another_one_unharmed() -> None:
    copies = HostCopies(np.full((4, 8), 7, np.uint8), NumpyMover())
    copies.free_buffer(copies.make_buffer(4))
    buffer = copies.make_buffer(4)
    finish = copies.start(
        CopyWay.OUT, [Stretch(buffer, 0, np.arange(4, dtype=np.int64))], is_beside=False
    )
    finish()
    assert (buffer.memory == 7).all()


@pytest.mark.parametrize("must_land", [True, False])
def test_only_copies_that_must_land_may_take_the_threads_of_steps(*, must_land: bool) -> None:
    found: list[bool] = []

    class Mover(NumpyMover):
        def gather(self, *ends: np.ndarray, is_beside: bool) -> None:
            found.append(is_beside)

    rig = Rig(lambda pool: HostCopies(_bytes_of(pool), Mover()))
    rig.copy(order(CopyWay.OUT, [0], [SavedPage(1, 0)], must_land=must_land))
    assert found == [not must_land]
    rig.copier.close()


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


def test_host_memory_that_was_freed_serves_the_next_park_of_about_its_size() -> None:
    copies = HostCopies(np.zeros((1, 8), np.uint8), NumpyMover())
    freed = copies.make_buffer(6)
    copies.free_buffer(freed)
    again = copies.make_buffer(4)
    assert again.memory.shape == (4, 8)
    assert np.shares_memory(again.memory, freed.memory)
    beside = copies.make_buffer(4)
    assert not np.shares_memory(beside.memory, freed.memory), "it serves one park at a time"
    for slots in (1, 5):
        copies.free_buffer(again)
        other = copies.make_buffer(slots)
        assert other.memory.shape == (slots, 8)
        assert not np.shares_memory(other.memory, freed.memory)


def test_slots_side_by_side_are_one_stretch() -> None:
    copies = HostCopies(np.zeros((1, 8), np.uint8), NumpyMover())
    buffers = {one: copies.make_buffer(9) for one in (1, 2)}
    saved = [SavedPage(2, 0), SavedPage(1, 5), SavedPage(1, 3), SavedPage(1, 4), SavedPage(1, 0)]
    found = stretches_of(buffers, [10, 11, 12, 13, 14], saved)
    assert [(s.first, s.pages.tolist()) for s in found] == [(0, [14]), (3, [12, 13, 11]), (0, [10])]
    assert [s.buffer for s in found] == [buffers[1], buffers[1], buffers[2]]


TROUBLES = [
    MemoryError("none left"),
    RuntimeError("device-side assert"),
    torch.OutOfMemoryError("0 bytes free"),
    ValueError("a fault of our own"),
]
"""Whatever it is, one request's state is lost by it and nothing else."""


@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
def test_a_copy_that_fails_before_the_step_is_told(
    error: Exception,
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*_: object, is_beside: bool = False) -> None:
        raise error

    monkeypatch.setattr(rig.copies, "start", fail)
    out = order(CopyWay.OUT, [0], [SavedPage(1, 0)], must_land=True)
    assert not rig.copier.carry_out(out)
    monkeypatch.setattr(rig.copies, "start", lambda way, stretches, *, is_beside: fail)
    assert not rig.copier.carry_out(out)
    assert [record.args for record in caplog.records] == [(error,)] * 2


@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
def test_a_copy_that_fails_beside_the_steps_is_told(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise error

    rig = Rig(WAYS["beside a device's steps"])
    monkeypatch.setattr(rig.copies, "start", lambda way, stretches, *, is_beside: fail)
    assert rig.copier.carry_out(order(CopyWay.OUT, [0], [SavedPage(1, 0)], must_land=False))
    assert not rig.done.get(timeout=60).is_made
    assert [record.args for record in caplog.records] == [(error,)]
    rig.copier.close()


def test_memory_stays_pinned_as_long_as_it_is_there() -> None:
    lane = FakeLane(pageable={1})
    rig = Rig(lambda pool: DeviceCopies(pool, lane))
    for buffer_id, slots, pinned in ((1, 2, 1), (2, 2, 1), (1, 5, 1), (3, 1, 2)):
        saved = [SavedPage(buffer_id, 0)]
        rig.copy(order(CopyWay.OUT, [0], saved, must_land=True, slots=slots))
        assert len(lane.pinned) == pinned
    rig.copier.give_back([1])
    assert len(lane.pinned) == 1
    rig.copier.close()
    assert not lane.pinned


def test_who_has_to_be_waited_for_is_named_once() -> None:
    rig = Rig(WAYS["beside, not pinned"])
    saved = [SavedPage(1, 0)]
    rig.copy(order(CopyWay.OUT, [0], saved, must_land=True))
    assert rig.copier.take_awaited() == (), "it was to land before the step anyway"
    rig.copy(order(CopyWay.OUT, [0], saved, must_land=False))
    assert rig.copier.take_awaited() == ("a",)
    assert rig.copier.take_awaited() == ()
    rig.copier.close()


def test_the_pool_is_let_go_of_with_the_copier(rig: Rig) -> None:
    rig.copier.close()
    pool, rig.pool = weakref.ref(rig.pool.untyped_storage()), torch.empty(0)
    gc.collect()
    assert pool() is None


def test_host_memory_is_copied_by_the_host() -> None:
    pool = np.zeros((1, 8), np.uint8)
    assert isinstance(choose_copies(pool, NumpyMover(), is_async=True), HostCopies)
