"""Tests wait as long as their process runs, whatever the clock says: standing still for minutes fails none."""

from __future__ import annotations

import asyncio

import pytest

from fakes.patience import Patience, bounded, until


class Clock:
    """Goes on by what is written down for the next looks, then by a tenth of a second for each."""

    def __init__(self, *jumps_s: float) -> None:
        self._jumps_s = iter(jumps_s)
        self._now_s = 0.0

    def __call__(self) -> float:
        self._now_s += next(self._jumps_s, 0.1)
        return self._now_s


def count(patience: Patience, looks: int) -> None:
    for _ in range(looks):
        patience.spend("the end")


@pytest.mark.parametrize("jumps_s", [(), (0.0, 3600.0, 7200.0)])
def test_time_in_which_the_process_stood_still_is_not_counted(jumps_s: tuple[float, ...]) -> None:
    patience = Patience(10.0, clock=Clock(*jumps_s))
    count(patience, 98)
    with pytest.raises(TimeoutError, match="the end did not come"):
        count(patience, 103)


def test_many_quick_looks_take_no_more_patience_than_their_time() -> None:
    patience = Patience(1.0, clock=Clock(*[0.001] * 900))
    count(patience, 900)


def test_what_comes_after_the_process_stood_still_is_seen() -> None:
    async def story() -> None:
        seen: list[int] = []
        patience = Patience(1.0, clock=Clock(0.0, 3600.0, 3600.0))
        asyncio.get_running_loop().call_later(0.005, seen.append, 1)
        await until(lambda: seen, patience)

    asyncio.run(story())


def test_what_never_comes_ends_the_wait() -> None:
    async def story() -> None:
        with pytest.raises(TimeoutError):
            await until(lambda: False, Patience(0.5, clock=Clock()))
        forever = asyncio.Event()
        with pytest.raises(TimeoutError):
            await bounded(forever.wait(), Patience(0.5, clock=Clock(*[10.0] * 9)))

    asyncio.run(story())
