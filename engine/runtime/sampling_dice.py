"""Dice without memory: the number drawn is a function of (seed, position), and the choice of (weights, number).

Runs on the engine thread. Nothing is advanced by a draw, so no park, replay or retry can lose or repeat one. Imports no
torch and no generator of the standard library or numpy, whose streams are state.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

_WORD = 0xFFFF_FFFF
_MULTIPLIER, _OTHER_MULTIPLIER = 0xD251_1F53, 0xCD9E_8D57
_KEY_STEPS = (0x9E37_79B9, 0xBB67_AE85)
_ROUNDS = 10
_STRETCH = 512


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Four random 32-bit words for a counter of four and a key of two such words.

    Source: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
    """
    c0, c1, c2, c3 = counter
    for k0, k1 in _round_keys(key):
        even, odd = _MULTIPLIER * c0, _OTHER_MULTIPLIER * c2
        c0, c1, c2, c3 = (odd >> 32) ^ c1 ^ k0, odd & _WORD, (even >> 32) ^ c3 ^ k1, even & _WORD
    return c0, c1, c2, c3


@functools.lru_cache(maxsize=256)
def _round_keys(key: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """The keys of all rounds; a request draws with one key for all its tokens."""
    return tuple(
        ((key[0] + _KEY_STEPS[0] * index) & _WORD, (key[1] + _KEY_STEPS[1] * index) & _WORD)
        for index in range(_ROUNDS)
    )


def uniform(seed: int, position: int) -> float:
    """One number in [0, 1), a multiple of 2**-53, for the token at `position` (64 bits, not negative).

    Any integer is a seed; its low 64 bits in two's complement count, so -1 and 2**64 - 1 are the same seed.
    """
    counter = (position & _WORD, position >> 32 & _WORD, 0, 0)
    high, low, _, _ = philox(counter, (seed & _WORD, seed >> 32 & _WORD))
    return ((high << 32 | low) >> 11) * 2.0**-53


def pick(weights: NDArray[np.float64], number: float) -> int:
    """The index whose share of the summed weights, laid end to end in their order, covers `number`.

    weights: [n], none negative, not all 0; they need not sum to 1. An index of weight 0 is never picked.
    number: from `uniform`, which is far enough below 1 for the product to stay below the sum.
    """
    if weights.size <= _STRETCH:
        ends = weights.cumsum()
        return int(ends.searchsorted(number * ends[-1], side="right"))
    # Adding up one by one waits for each sum: stretches first, then within one.
    sums = np.add.reduceat(weights, np.arange(0, weights.size, _STRETCH))
    ends = sums.cumsum()
    target = number * ends[-1]
    stretch = int(ends.searchsorted(target, side="right"))
    begin = stretch * _STRETCH
    within = weights[begin : begin + _STRETCH].cumsum()
    left = target - (ends[stretch - 1] if stretch else 0.0)
    # sums in another order may differ in their last bit: then it is the last that weighs anything
    at = min(within.searchsorted(left, side="right"), within.searchsorted(within[-1]))
    return begin + int(at)
