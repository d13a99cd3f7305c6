"""Offsets: the same as adding everything up, whatever changes."""

from __future__ import annotations

import random
from bisect import bisect_right
from itertools import accumulate

import pytest

from studio.views.chat.offsets import Offsets


@pytest.mark.parametrize("seed", range(20))
def test_starts_and_places_are_those_of_the_plain_sums(seed: int) -> None:
    dice = random.Random(seed)
    offsets, lengths = Offsets(24), list[int]()
    for _ in range(300):
        match dice.randrange(8):
            case 0 if lengths:
                size = dice.randrange(len(lengths) + 1)
                offsets.cut(size)
                del lengths[size:]
            case 1 | 2 if lengths:
                index = dice.randrange(len(lengths))
                lengths[index] = dice.randrange(1, 500)
                offsets.set(index, lengths[index])
            case _:
                lengths.append(dice.randrange(1, 500))
                offsets.append(lengths[-1])
        starts = [24, *accumulate(lengths, initial=24)][1:]
        assert [offsets.start(index) for index in range(len(lengths) + 1)] == starts
        assert (len(offsets), offsets.end) == (len(lengths), starts[-1])
        for y in (0, 24, starts[-1], starts[-1] + 9, dice.randrange(starts[-1] + 1)):
            assert offsets.index_at(y) == max(0, bisect_right(starts[:-1], y) - 1)
