"""Pages are counted right through every way of changing hands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.core.kv_pool import KVPool


def taken(pool: KVPool, count: int) -> list[int]:
    pages = pool.take(count)
    assert pages is not None
    return pages


def published(pool: KVPool, token_ids: list[int]) -> list[int]:
    """A page table that holds `token_ids`, every page of it published."""
    size = pool.page_tokens
    table = taken(pool, len(token_ids) // size)
    for index in range(len(table)):
        pool.publish(table, index, tuple(token_ids[index * size : (index + 1) * size]))
    return table


@pytest.mark.parametrize(("tokens", "pages"), [(0, 0), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_pages_for_rounds_up(tokens: int, pages: int) -> None:
    assert KVPool(8, 4).pages_for(tokens) == pages


def test_take_hands_out_different_pages_and_release_returns_them() -> None:
    pool = KVPool(4, 2)
    pages = taken(pool, 3)
    assert len(set(pages)) == 3
    assert pool.num_usable == 1
    pool.release(pages)
    assert pool.usage().free_pages == 4
    pool.check()


def test_take_of_more_than_is_usable_gives_none_and_changes_nothing() -> None:
    pool = KVPool(4, 2)
    taken(pool, 3)
    assert pool.take(2) is None
    assert pool.num_usable == 1
    pool.check()


def test_shared_pages_stay_until_the_last_user_leaves() -> None:
    pool = KVPool(4, 2)
    pages = taken(pool, 2)
    pool.share(pages)
    pool.release(pages)
    assert pool.num_usable == 2
    pool.release(pages)
    assert pool.num_usable == 4
    pool.check()


def test_releasing_a_page_nobody_uses_is_an_error() -> None:
    pool = KVPool(4, 2)
    with pytest.raises(ValueError, match="page 1 is released, but nobody uses it"):
        pool.release([1])


def test_published_pages_stay_findable_after_release_until_they_are_taken() -> None:
    pool = KVPool(4, 2)
    table = published(pool, [1, 2, 3, 4])
    pool.release(table)
    usage = pool.usage()
    assert (usage.total_pages, usage.free_pages, usage.reusable_pages) == (4, 2, 2)
    assert pool.find([1, 2, 3, 4, 5]) == table
    pool.check()
    taken(pool, 3)  # two free ones and the end of the chain
    assert pool.find([1, 2, 3, 4, 5]) == table[:1]
    pool.check()
    taken(pool, 1)
    assert pool.find([1, 2, 3, 4, 5]) == []
    pool.check()


def test_free_pages_are_taken_before_reusable_ones() -> None:
    pool = KVPool(3, 2)
    table = published(pool, [1, 2])
    pool.release(table)
    assert table[0] not in taken(pool, 2)


def test_a_found_page_that_is_shared_cannot_be_taken() -> None:
    pool = KVPool(2, 2)
    table = published(pool, [1, 2, 3, 4])
    pool.release(table)
    pool.share(pool.find([1, 2, 9]))
    assert pool.num_usable == 1
    assert taken(pool, 1) == [table[1]]
    assert pool.take(1) is None
    pool.check()


def test_chains_are_given_up_from_the_end_whatever_order_users_leave_in() -> None:
    pool = KVPool(6, 2)
    first = published(pool, [1, 2, 3, 4, 5, 6])
    second = pool.find([1, 2, 3, 4, 9])
    pool.share(second)
    pool.release(first)
    pool.check()
    pool.release(second)
    pool.check()
    taken(pool, 3)
    for left in (2, 1, 0):
        taken(pool, 1)
        assert pool.find([1, 2, 3, 4, 5, 6, 7]) == first[:left]
        pool.check()


def test_publishing_what_is_known_points_the_table_to_the_known_page() -> None:
    pool = KVPool(4, 2)
    first, second = published(pool, [1, 2, 3, 4]), taken(pool, 2)
    own = list(second)
    pool.publish(second, 0, (1, 2))
    assert second == [first[0], own[1]]
    pool.publish(second, 1, (3, 9))
    assert second == [first[0], own[1]]
    assert pool.num_usable == 1  # its copy of the first page
    pool.check()
    pool.release(first)
    pool.release(second)
    pool.check()
    assert pool.num_usable == 4


def test_publishing_can_revive_a_page_that_nobody_used() -> None:
    pool = KVPool(4, 2)
    first = published(pool, [1, 2])
    pool.release(first)
    second = taken(pool, 1)
    pool.publish(second, 0, (1, 2))
    assert second == first
    assert pool.ref_count(first[0]) == 1
    pool.check()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda pool: pool._free.append(pool._free[0]), "free twice"),
        (lambda pool: pool._free.pop(), "2 free \\+ 0 reusable \\+ 1 in use are not 4 pages"),
        (lambda pool: pool._ref_counts.__setitem__(3, 1), "free, but in use"),
        (lambda pool: pool._ref_counts.__setitem__(0, -1), "negative reference count"),
        (lambda pool: pool._ref_counts.__setitem__(0, 0), "3 free \\+ 0 reusable \\+ 0 in use"),
    ],
)
def test_check_tells_what_is_wrong(spoil: Callable[[KVPool], object], message: str) -> None:
    pool = KVPool(4, 2)
    taken(pool, 1)
    pool.check()
    spoil(pool)
    with pytest.raises(AssertionError, match=message):
        pool.check()
