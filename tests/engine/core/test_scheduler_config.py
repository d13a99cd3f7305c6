"""Limits are checked once, with field, value and bound in the message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.core.config import SchedulerConfig


@pytest.mark.parametrize("name", ["num_pages", "page_tokens", "max_running", "step_tokens"])
def test_a_size_below_one_is_refused(name: str) -> None:
    sizes: dict[str, Any] = {name: 0}
    with pytest.raises(ValueError, match=f"{name} is 0, the least is 1"):
        replace(SchedulerConfig(num_pages=4), **sizes)


@pytest.mark.parametrize("window_tokens", [-1, 129])
def test_a_window_larger_than_the_pool_is_refused(window_tokens: int) -> None:
    with pytest.raises(ValueError, match=f"window_tokens is {window_tokens}, allowed is 0 to"):
        SchedulerConfig(num_pages=4, page_tokens=32, window_tokens=window_tokens)


def test_without_a_window_a_sequence_may_fill_the_pool() -> None:
    assert SchedulerConfig(num_pages=4, page_tokens=32).sequence_tokens == 128
    assert SchedulerConfig(num_pages=4, page_tokens=32, window_tokens=100).sequence_tokens == 100


def test_there_are_no_more_seats_than_tokens_in_a_step() -> None:
    assert SchedulerConfig(num_pages=4, max_running=8, step_tokens=3).seats == 3
    assert SchedulerConfig(num_pages=4, max_running=2, step_tokens=3).seats == 2
