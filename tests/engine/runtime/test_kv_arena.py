"""Memory behind pages: there when written, gone when given back, refused when the system has none."""

import sys

import pytest

from engine.runtime import kv_arena
from engine.runtime.kv_arena import KvArena

PLENTY = 1 << 40
KEPT_FREE = 64 << 20


PAGE_BYTES = 8192


def _arena(num_pages: int) -> KvArena:
    return KvArena.allocate(num_pages, PAGE_BYTES)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system takes memory back later")
def test_pages_given_back_are_zeros_and_their_neighbours_untouched() -> None:
    arena = _arena(12)
    arena.pages.fill(3)
    arena.give_back([7, 2, 3, 11])
    left = [page for page in range(12) if arena.pages[page].any()]
    assert left == [0, 1, 4, 5, 6, 8, 9, 10]
    assert all((arena.pages[page] == 3).all() for page in left)


def test_memory_is_asked_for_once_for_each_page_until_it_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kv_arena, "_MOST_AHEAD_BYTES", 0)
    asked = []

    def free_bytes() -> int:
        asked.append(True)
        return PLENTY

    arena = _arena(8)
    arena.commit([0, 1], free_bytes)
    arena.commit([1, 0], free_bytes)
    arena.commit([], free_bytes)
    assert len(asked) == 1
    arena.give_back([1])
    arena.commit([0, 1], free_bytes)
    assert len(asked) == 2


@pytest.mark.parametrize(("left", "num_held"), [(0, 0), (3 * PAGE_BYTES + 1, 3), (PLENTY, 5)])
def test_an_answer_holds_for_some_pages_more_as_far_as_there_is_memory_left(
    monkeypatch: pytest.MonkeyPatch, *, left: int, num_held: int
) -> None:
    monkeypatch.setattr(kv_arena, "_MOST_AHEAD_BYTES", 5 * PAGE_BYTES)
    arena = _arena(64)
    arena.commit([0], lambda: KEPT_FREE + PAGE_BYTES + left)
    for page in range(1, num_held + 1):
        arena.commit([page], lambda: 0)
    with pytest.raises(MemoryError):
        arena.commit([num_held + 1], lambda: 0)


def test_too_little_memory_is_told_and_changes_nothing() -> None:
    arena = _arena(8)
    page_bytes = arena.pages[0].nbytes
    with pytest.raises(MemoryError, match="3 pages of"):
        arena.commit([0, 1, 2], lambda: KEPT_FREE + 3 * page_bytes - 1)
    with pytest.raises(MemoryError):
        arena.commit([0], lambda: 0)
    arena.commit([0, 1, 2], lambda: KEPT_FREE + 3 * page_bytes)


def test_address_space_costs_nothing() -> None:
    arena = _arena(1 << 20)  # 8 GiB
    arena.pages[-1].fill(1)
    assert arena.pages[-1].all()
