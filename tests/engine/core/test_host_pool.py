"""Buffers are counted by capacity, grow by half where that is affordable, and idle ones are given up for others."""

from __future__ import annotations

from random import Random

import pytest

from engine.core.host_pool import NO_LIMIT, HostPool

KIB = 1024
MIB = 1024 * KIB


def reserved(pool: HostPool, num_bytes: int, buffer_id: int | None = None) -> int:
    found = pool.reserve(num_bytes, buffer_id)
    assert found is not None
    pool.check()
    return found


@pytest.mark.parametrize(
    ("budget", "need", "capacity"),
    [
        (NO_LIMIT, 1, 64 * KIB),
        (NO_LIMIT, 64 * KIB + 1, 128 * KIB),
        (NO_LIMIT, MIB, 1536 * KIB),
        (3 * MIB, MIB, 1536 * KIB),
        (3 * MIB - 1, MIB, MIB),
        (2 * MIB, MIB // 2, 768 * KIB),
        (MIB, MIB, MIB),
    ],
)
def test_a_buffer_is_grown_by_half_only_where_a_second_one_of_that_size_would_fit(
    budget: int, need: int, capacity: int
) -> None:
    pool = HostPool(budget)
    assert pool.capacity(reserved(pool, need)) == capacity
    assert pool.used_bytes == capacity


def test_over_budget_nothing_is_reserved_and_nothing_changes() -> None:
    pool = HostPool(MIB)
    first = reserved(pool, 600 * KIB)
    assert not pool.can_hold(600 * KIB)
    assert pool.reserve(600 * KIB) is None
    assert pool.used_bytes == pool.capacity(first)
    assert pool.take_dropped() == ()


def test_an_idle_buffer_is_used_again_without_growing() -> None:
    pool = HostPool(10 * MIB)
    first = reserved(pool, MIB)
    pool.set_idle(first)
    assert reserved(pool, MIB + 1, first) == first
    assert pool.capacity(first) == 1536 * KIB


def test_a_buffer_that_is_too_small_is_replaced_by_a_larger_one() -> None:
    pool = HostPool(10 * MIB)
    first = reserved(pool, MIB)
    pool.set_idle(first)
    assert reserved(pool, 2 * MIB, first) == first
    assert pool.used_bytes == 3 * MIB


def test_idle_buffers_are_given_up_for_others_the_largest_first() -> None:
    pool = HostPool(4 * MIB)
    large, small = reserved(pool, MIB), reserved(pool, 256 * KIB)
    pool.set_idle(large)
    pool.set_idle(small)
    reserved(pool, 3 * MIB)
    assert pool.take_dropped() == (large,)
    assert pool.used_bytes <= 4 * MIB


def test_a_kept_buffer_that_is_larger_than_the_next_state_counts_whole() -> None:
    pool = HostPool(2 * MIB)
    kept = reserved(pool, 2 * MIB)
    pool.set_idle(kept)
    reserved(pool, 64 * KIB, kept)
    assert pool.used_bytes == 2 * MIB
    assert not pool.can_hold(1)


def test_a_buffer_given_up_can_be_asked_for_and_comes_as_a_new_one() -> None:
    pool = HostPool(MIB)
    first = reserved(pool, 700 * KIB)
    pool.set_idle(first)
    second = reserved(pool, 700 * KIB)
    pool.set_idle(second)
    pool.set_idle(first)  # it is gone: nothing happens
    third = reserved(pool, 700 * KIB, first)
    assert len({first, second, third}) == 3
    assert pool.take_dropped() == (first, second)


def test_a_smaller_budget_takes_idle_buffers_at_once_and_says_so_of_busy_ones() -> None:
    pool = HostPool(NO_LIMIT)
    busy, idle = reserved(pool, 128 * KIB), reserved(pool, 128 * KIB)
    pool.set_idle(idle)
    pool.set_budget(128 * KIB)
    assert pool.take_dropped() == (idle,)
    assert pool.is_over_budget
    pool.check()
    pool.release(busy)
    assert not pool.is_over_budget
    assert pool.used_bytes == 0


def test_no_limit_holds_anything() -> None:
    pool = HostPool(NO_LIMIT)
    assert pool.can_hold(1 << 60)
    assert pool.capacity(reserved(pool, 1 << 40)) == 3 << 39


def test_a_zero_budget_holds_nothing() -> None:
    assert HostPool(0).reserve(1) is None


def test_releasing_twice_drops_once() -> None:
    pool = HostPool(MIB)
    first = reserved(pool, 1)
    pool.release(first)
    pool.release(first)
    assert pool.take_dropped() == (first,)
    assert pool.take_dropped() == ()


@pytest.mark.parametrize("seed", range(20))
def test_the_budget_is_never_exceeded_whatever_comes(seed: int) -> None:
    random = Random(seed)
    pool = HostPool(random.choice([0, MIB, 5 * MIB]))
    ids: list[int] = []
    for _ in range(300):
        one = random.choice(ids) if ids else None
        match random.randrange(4):
            case 0 | 1:
                num_bytes = random.randint(1, 2 * MIB)
                can = pool.can_hold(num_bytes)
                found = pool.reserve(num_bytes)
                assert (found is not None) is can
                ids += [] if found is None else [found]
            case 2 if one is not None:
                pool.set_idle(one)
            case 3 if one is not None:
                pool.release(one)
                ids.remove(one)
        assert pool.used_bytes <= pool.budget_bytes
        pool.check()
