"""Memory behind pages: there when written, gone when given back, refused when the system has none."""

import sys

import pytest
import torch

from engine.api import KvType
from engine.models.spec import parse_spec
from engine.runtime.kv_arena import KvArena
from fakes.paper_model import paper_gguf

CPU = torch.device("cpu")
PLENTY = 1 << 40
KEPT_FREE = 64 << 20


def _arena(num_pages: int) -> KvArena:
    return KvArena.allocate(parse_spec(paper_gguf()), num_pages, KvType.F16, CPU)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system takes memory back later")
def test_pages_given_back_are_zeros_and_their_neighbours_untouched() -> None:
    arena = _arena(12)
    arena.tensor.fill_(3)
    arena.give_back([7, 2, 3, 11])
    left = [page for page in range(12) if arena.tensor[page].any()]
    assert left == [0, 1, 4, 5, 6, 8, 9, 10]
    assert all((arena.tensor[page] == 3).all() for page in left)


def test_memory_is_asked_for_once_for_each_page_until_it_is_given_back() -> None:
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


def test_too_little_memory_is_told_and_changes_nothing() -> None:
    arena = _arena(8)
    page_bytes = arena.tensor[0].nbytes
    with pytest.raises(MemoryError, match="3 pages of"):
        arena.commit([0, 1, 2], lambda: KEPT_FREE + 3 * page_bytes - 1)
    with pytest.raises(MemoryError):
        arena.commit([0], lambda: 0)
    arena.commit([0, 1, 2], lambda: KEPT_FREE + 3 * page_bytes)


def test_address_space_costs_nothing() -> None:
    spec = parse_spec(paper_gguf())
    arena = KvArena.allocate(spec, 1 << 20, KvType.F16, CPU)  # 8 GiB
    arena.tensor[-1].fill_(1)
    assert arena.tensor[-1].all()
