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
    assert pool.user_count(first[0]) == 1
    pool.check()


# --- the parked account


def test_pages_laid_down_leave_the_pools_account_and_keep_their_numbers() -> None:
    pool = KVPool(4, 2, arena_pages=10)
    table = taken(pool, 3)
    pool.lay_down(table)
    assert (pool.num_usable, pool.num_parked) == (4, 3)
    others = taken(pool, 4)
    assert not set(others) & set(table)
    pool.release(others)
    pool.wake(table)
    assert (pool.num_usable, pool.num_parked) == (1, 0)
    pool.check()


def test_a_page_that_somebody_still_uses_changes_account_when_he_leaves() -> None:
    pool = KVPool(4, 2, arena_pages=10)
    table = published(pool, [1, 2])
    pool.share(table)
    pool.lay_down(table)
    assert (pool.num_usable, pool.num_parked) == (3, 0)
    pool.release(table)
    assert (pool.num_usable, pool.num_parked) == (4, 1)
    pool.check()


def test_beyond_the_limit_pages_are_stranded_in_the_pool_until_there_is_room() -> None:
    pool = KVPool(4, 2, arena_pages=10)
    pool.parked_limit = 1
    table = taken(pool, 3)
    pool.lay_down(table)
    assert (pool.num_usable, pool.num_parked, pool.num_stranded) == (2, 1, 2)
    pool.check()
    pool.parked_limit = 2
    pool.settle()
    assert (pool.num_usable, pool.num_parked, pool.num_stranded) == (3, 2, 1)
    pool.check()
    pool.wake(table)
    assert (pool.num_usable, pool.num_parked, pool.num_stranded) == (1, 0, 0)
    pool.check()


def test_a_page_parked_by_two_is_counted_once_and_wakes_with_the_first() -> None:
    pool = KVPool(4, 2, arena_pages=10)
    table = published(pool, [1, 2])
    pool.share(table)
    pool.lay_down(table)
    pool.lay_down(table)
    assert pool.num_parked == 1
    pool.wake(table)
    assert (pool.num_parked, pool.num_usable) == (0, 3)
    pool.release(table)
    assert (pool.num_parked, pool.num_usable) == (1, 4)
    pool.check()


def test_a_newcomer_finds_parked_pages_and_pays_for_their_room() -> None:
    pool = KVPool(2, 2, arena_pages=6)
    table = published(pool, [1, 2, 3, 4])
    pool.lay_down(table)
    found = pool.find([1, 2, 3, 4, 5])
    assert found == table
    assert pool.cost(found) == 2
    pool.share(found)
    assert (pool.num_usable, pool.num_parked) == (0, 0)
    pool.check()


def test_waking_makes_room_by_forgetting_prefixes_nobody_uses() -> None:
    pool = KVPool(2, 2, arena_pages=6)
    parked = taken(pool, 2)
    pool.lay_down(parked)
    pool.release(published(pool, [1, 2, 3, 4]))
    assert pool.usage().reusable_pages == 2
    pool.wake(parked)
    assert pool.usage().reusable_pages == 0
    pool.check()


@pytest.mark.parametrize(("others", "reusable"), [(0, 2), (1, 1), (2, 0)])
def test_forgotten_pages_stay_known_as_far_as_the_pool_has_room(others: int, reusable: int) -> None:
    pool = KVPool(2, 2, arena_pages=6)
    table = published(pool, [1, 2, 3, 4])
    pool.lay_down(table)
    taken(pool, others)
    pool.forget(table)
    assert pool.usage().reusable_pages == reusable
    assert len(pool.find([1, 2, 3, 4, 5])) == reusable
    pool.check()


def test_a_forgotten_page_takes_the_place_of_the_prefix_that_was_used_longest_ago() -> None:
    pool = KVPool(1, 2, arena_pages=3)
    parked = published(pool, [1, 2])
    pool.lay_down(parked)
    pool.release(published(pool, [3, 4]))
    pool.forget(parked)
    assert pool.find([1, 2, 0]) == parked
    assert pool.find([3, 4, 0]) == []
    pool.check()


def test_memory_behind_pages_is_given_back_when_the_pools_account_no_longer_covers_it() -> None:
    pool = KVPool(4, 2, arena_pages=10)
    parked = taken(pool, 4)
    pool.lay_down(parked)
    others = taken(pool, 3)
    pool.release(others)
    assert pool.collect_cold() == ()  # they are free pages of the pool
    pool.wake(parked)
    assert set(pool.collect_cold()) == set(others)
    assert pool.collect_cold() == ()
    pool.check()


def test_pages_with_memory_behind_them_are_taken_first() -> None:
    pool = KVPool(4, 2)
    warm = taken(pool, 1)
    pool.release(warm)
    assert taken(pool, 1) == warm
    assert pool.num_warm == 0


def test_purging_forgets_what_nobody_uses_and_keeps_the_memory() -> None:
    pool = KVPool(4, 2)
    pool.release(published(pool, [1, 2, 3, 4]))
    pool.purge()
    assert pool.find([1, 2, 3, 4, 5]) == []
    assert (pool.num_warm, pool.usage().free_pages) == (2, 4)
    pool.check()


def test_pages_of_only_some_tables_are_those_nobody_else_uses() -> None:
    pool = KVPool(8, 2)
    shared, own = published(pool, [1, 2]), taken(pool, 1)
    pool.share(shared)
    pool.share(shared)
    tables = [shared + own, shared]
    assert pool.pages_of_only(tables[:1], sleepers=True) == own
    assert pool.pages_of_only(tables, sleepers=True) == own
    pool.release(shared)
    assert pool.pages_of_only(tables, sleepers=True) == shared + own


def test_a_page_that_a_parked_table_lists_too_comes_free_only_where_it_changes_account() -> None:
    pool = KVPool(8, 2)
    table = published(pool, [1, 2])
    pool.share(table)
    pool.lay_down(table)
    assert pool.pages_of_only([table], sleepers=True) == table
    assert pool.pages_of_only([table], sleepers=False) == []


def test_a_page_held_by_a_copy_is_not_given_to_anybody() -> None:
    pool = KVPool(1, 2)
    table = taken(pool, 1)
    pool.hold(table)
    pool.release(table)
    assert pool.take(1) is None
    pool.release(table)
    assert pool.take(1) == table


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda pool: pool._cold.append(pool._cold[0]), "free twice"),
        (lambda pool: pool._cold.pop(), "2 free \\+ 0 reusable \\+ 1 in use are not 4 pages"),
        (lambda pool: pool._users.__setitem__(3, 1), "free, but in use"),
        (lambda pool: pool._users.__setitem__(0, -1), "negative number of users"),
        (lambda pool: pool._users.__setitem__(0, 0), "1 counted as used, 0 in use"),
        (lambda pool: pool._sleepers.__setitem__(3, 1), "free, but in use"),
        (lambda pool: pool._parked.add(0), "asleep set"),
    ],
)
def test_check_tells_what_is_wrong(spoil: Callable[[KVPool], object], message: str) -> None:
    pool = KVPool(4, 2)
    taken(pool, 1)
    pool.check()
    spoil(pool)
    with pytest.raises(AssertionError, match=message):
        pool.check()
