"""Every bound of the configuration refuses what lies outside, naming field, value and limit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.core.config import Knobs, ParkConfig, ParkMemory, SchedulerConfig


@pytest.mark.parametrize("field", ["num_pages", "page_tokens", "max_running", "step_tokens"])
def test_counts_are_at_least_one(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} is 0, the least is 1"):
        SchedulerConfig(**{"num_pages": 4, field: 0})


@pytest.mark.parametrize("window", [-1, 129])
def test_the_window_is_no_larger_than_the_pool(window: int) -> None:
    with pytest.raises(ValueError, match=f"window_tokens is {window}, allowed is 0 to the pool's"):
        SchedulerConfig(num_pages=4, page_tokens=32, window_tokens=window)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ParkConfig(budget_bytes=-2), "budget_bytes is -2, the least is -1"),
        (lambda: ParkConfig(page_bytes=0), "page_bytes is 0, the least is 1"),
        (lambda: ParkConfig(arena_pages=-1), "arena_pages is -1, the least is 0"),
        (lambda: ParkConfig(rotate_after_s=-1), "rotate_after_s is -1, the least is 0"),
        (
            lambda: ParkConfig(memory=ParkMemory.IN_PLACE),
            "budget_bytes is -1, no limit: parking in place needs arena_pages",
        ),
        (lambda: ParkConfig(is_async=True), "is_async is on and memory is none: only copies"),
        (lambda: Knobs(fail_save=-1), "fail_save is -1, the least is 0"),
        (lambda: Knobs(park_every_tokens=-1), "park_every_tokens is -1, the least is 0"),
        (
            lambda: SchedulerConfig(num_pages=4, knobs=Knobs(granularity_tokens=33)),
            "granularity_tokens is 33, allowed are multiples of 32",
        ),
    ],
)
def test_settings_of_parking_are_bounded_too(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_no_window_means_the_pool() -> None:
    config = SchedulerConfig(num_pages=4, page_tokens=32)
    assert config.sequence_tokens == config.pool_tokens == 128
    assert SchedulerConfig(num_pages=4, page_tokens=32, window_tokens=5).sequence_tokens == 5


def test_there_are_no_more_seats_than_tokens_in_a_step() -> None:
    assert SchedulerConfig(num_pages=4, max_running=8, step_tokens=3).seats == 3


@pytest.mark.parametrize(
    ("memory", "budget", "arena", "pages", "arena_pages"),
    [
        (ParkMemory.NONE, -1, 0, 0, 10),
        (ParkMemory.COPIED, 640, 0, 64, 10),
        (ParkMemory.IN_PLACE, 645, 0, 64, 74),
        (ParkMemory.IN_PLACE, 0, 0, 0, 10),
        (ParkMemory.IN_PLACE, -1, 30, 20, 30),
        (ParkMemory.IN_PLACE, 1 << 60, 30, 20, 30),
        (ParkMemory.IN_PLACE, 50, 30, 5, 30),
        (ParkMemory.IN_PLACE, 50, 4, 0, 10),
    ],
)
def test_a_budget_in_bytes_is_whole_pages_within_the_arena(
    memory: ParkMemory, budget: int, arena: int, pages: int, arena_pages: int
) -> None:
    park = ParkConfig(memory=memory, budget_bytes=budget, arena_pages=arena, page_bytes=10)
    config = SchedulerConfig(num_pages=10, park=park)
    assert config.budget_pages(budget) == pages
    assert config.arena_pages == arena_pages
