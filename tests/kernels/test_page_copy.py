"""Pages out of a pool and back, natively on some threads or alone as by numpy; what does not fit changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fakes.native_rig import needs_kernels
from kernels.cpu.library import ThreadTeam, load_library
from kernels.page_copy import NativeMover, NumpyMover, PageMover

MOVERS = [
    "numpy",
    pytest.param("native", marks=needs_kernels),
    pytest.param("native, two threads", marks=needs_kernels),
]
SHAPES = [(1, 1), (7, 192), (40, 4096 + 64), (9, 3 * (128 << 10) + 72), (20, 1 << 20)]
"""Pages and their bytes: less than a line, odd ends, several pieces a page, more than caches hold."""


@pytest.fixture(params=MOVERS)
def mover(request: pytest.FixtureRequest) -> Iterator[PageMover]:
    if request.param == "numpy":
        yield NumpyMover()
        return
    library = load_library()
    with ThreadTeam(library, 2 if "two" in request.param else 1) as team:
        yield NativeMover(library, team)


def unaligned(pages: int, page_bytes: int) -> np.ndarray:
    """Pages that begin where no line of memory does."""
    return np.zeros(pages * page_bytes + 3, np.uint8)[3:].reshape(pages, page_bytes)


@pytest.mark.parametrize("is_beside", [True, False])
@pytest.mark.parametrize(("pages", "page_bytes"), SHAPES)
def test_pages_go_where_they_are_to_and_nothing_else_is_touched(
    mover: PageMover, pages: int, page_bytes: int, *, is_beside: bool
) -> None:
    dice = np.random.default_rng(page_bytes)
    pool = unaligned(pages + 5, page_bytes)
    pool[:] = dice.integers(0, 256, pool.shape, np.uint8)
    places = dice.permutation(pages + 5)[:pages].astype(np.int64)
    around = np.full((pages + 2, page_bytes), 7, np.uint8)
    mover.gather(pool, places, around[1:-1], is_beside=is_beside)
    assert np.array_equal(around[1:-1], pool[places])
    assert (around[0] == 7).all()
    assert (around[-1] == 7).all()
    back, expected = unaligned(pages + 5, page_bytes), np.zeros_like(pool)
    expected[places[::-1]] = around[1:-1]
    mover.scatter(around[1:-1], back, places[::-1].copy(), is_beside=is_beside)
    assert np.array_equal(back, expected)


def test_no_page_is_nothing_to_do(mover: PageMover) -> None:
    pool = np.ones((2, 8), np.uint8)
    mover.gather(pool, np.zeros(0, np.int64), np.zeros((0, 8), np.uint8), is_beside=False)
    mover.scatter(np.zeros((0, 8), np.uint8), pool, np.zeros(0, np.int64), is_beside=False)
    assert (pool == 1).all()


WRONG = {
    "a page after the last": ([0, 4], (2, 8), "pages 0 to 4 are asked for, the pool has 4"),
    "a page before the first": ([-1, 2], (2, 8), "pages -1 to 2 are asked for, the pool has 4"),
    "less memory": ([0, 1], (1, 8), "2 pages of 8 bytes do not fit memory of"),
    "narrower memory": ([0, 1], (2, 4), "2 pages of 8 bytes do not fit memory of"),
}


@pytest.mark.parametrize(("places", "shape", "words"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused_before_a_byte_is_written(
    mover: PageMover, places: list[int], shape: tuple[int, int], words: str
) -> None:
    pool, memory = np.ones((4, 8), np.uint8), np.full(shape, 2, np.uint8)
    index = np.array(places, np.int64)
    with pytest.raises(ValueError, match=words):
        mover.gather(pool, index, memory, is_beside=False)
    with pytest.raises(ValueError, match=words):
        mover.scatter(memory, pool, index, is_beside=False)
    assert (memory == 2).all()
    assert (pool == 1).all()


def test_memory_that_is_not_side_by_side_is_refused(mover: PageMover) -> None:
    pool, places = np.ones((8, 8), np.uint8), np.array([0, 1], np.int64)
    memory = np.zeros((2, 8), np.uint8)
    with pytest.raises(ValueError, match="pool is not uint8, row-contiguous"):
        mover.gather(pool[::2], places, memory, is_beside=False)
    with pytest.raises(ValueError, match="memory is not uint8, row-contiguous"):
        mover.gather(pool, places, np.zeros((4, 8), np.uint8)[::2], is_beside=False)
    with pytest.raises(ValueError, match="places is not int64, row-contiguous"):
        mover.scatter(memory, pool, places.astype(np.int32), is_beside=False)
    assert (memory == 0).all()


@needs_kernels
def test_a_team_that_was_closed_leaves_the_copy_to_the_caller() -> None:
    library = load_library()
    team = ThreadTeam(library, 2)
    mover = NativeMover(library, team)
    team.close()
    memory = np.zeros((1, 8), np.uint8)
    mover.gather(np.ones((2, 8), np.uint8), np.array([1], np.int64), memory, is_beside=False)
    assert (memory == 1).all()
