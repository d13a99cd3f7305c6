"""Pages that come from elsewhere are found as a prefix; what is in use and what is known stay as they are."""

from __future__ import annotations

import random

import pytest

from engine.core.kv_pool import KVPool
from engine.core.planting import plant_prefix

SIZE = 4


def tokens(count: int, seed: int = 0) -> tuple[int, ...]:
    dice = random.Random(seed)
    return tuple(dice.randrange(100) for _ in range(count))


def test_planted_pages_are_found_and_free_for_the_taking() -> None:
    pool, written = KVPool(8, SIZE), []
    ids = tokens(15)
    assert plant_prefix(pool, ids, 3, lambda pages, first: written.append((pages, first))) == 3
    ((pages, first),) = written
    assert (pool.find(ids), first) == (pages, 0)
    assert pool.usage().reusable_pages == 3
    assert pool.num_usable == 8
    pool.check()


def test_what_is_known_is_not_written_again() -> None:
    pool, ids = KVPool(8, SIZE), tokens(17)
    plant_prefix(pool, ids, 2, lambda _pages, _first: None)
    known = pool.find(ids)
    starts: list[int] = []
    assert plant_prefix(pool, ids, 4, lambda _pages, first: starts.append(first)) == 4
    assert starts == [2]
    assert pool.find(ids)[:2] == known
    assert plant_prefix(pool, ids, 4, lambda *_: pytest.fail("all are known")) == 4
    pool.check()


def test_a_pool_that_is_full_takes_the_first_pages_only_and_none_in_use() -> None:
    pool, ids = KVPool(5, SIZE), tokens(21)
    held = pool.take(3)
    assert held is not None
    assert plant_prefix(pool, ids, 5, lambda _pages, _first: None) == 2
    assert len(pool.find(ids)) == 2
    rest = pool.take(2)
    assert rest is not None
    assert plant_prefix(pool, ids, 5, lambda *_: pytest.fail("no room")) == 0
    pool.release(rest)
    pool.release(held)
    pool.check()


def test_a_write_that_fails_changes_nothing() -> None:
    pool, ids = KVPool(6, SIZE), tokens(21)
    plant_prefix(pool, ids, 1, lambda _pages, _first: None)

    def fail(_pages: list[int], _first: int) -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        plant_prefix(pool, ids, 4, fail)
    assert len(pool.find(ids)) == 1
    assert pool.num_usable == 6
    pool.check()


def test_more_pages_than_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="full pages"):
        plant_prefix(KVPool(6, SIZE), tokens(7), 2, lambda _pages, _first: None)


def test_random_planting_among_random_use_keeps_every_account() -> None:
    dice = random.Random(4)
    pool = KVPool(12, SIZE)
    held: list[list[int]] = []
    for _ in range(3000):
        match dice.randrange(3):
            case 0:
                taken = pool.take(dice.randrange(4))
                if taken:
                    held.append(taken)
            case 1 if held:
                pool.release(held.pop(dice.randrange(len(held))))
            case _:
                ids = tokens(dice.randrange(4, 40), seed=dice.randrange(6))
                most = dice.randrange(len(ids) // SIZE + 1)
                there = plant_prefix(pool, ids, most, lambda _pages, _first: None)
                assert there <= most
                assert len(pool.find((*ids, 0))) >= there
        pool.check()
