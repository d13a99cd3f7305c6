"""The generator gives the published numbers, and picks cover exactly their share of [0, 1)."""

from __future__ import annotations

import numpy as np
import pytest

from engine.runtime.sampling_dice import philox, pick, uniform

# Known answers for philox4x32 with 10 rounds, published with the Random123 library.
KNOWN_ANSWERS = [
    (
        "00000000 00000000 00000000 00000000",
        "00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def words(text: str) -> tuple[int, ...]:
    return tuple(int(word, 16) for word in text.split())


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_published_numbers(counter: str, key: str, answer: str) -> None:
    c0, c1, c2, c3 = words(counter)
    k0, k1 = words(key)
    assert philox((c0, c1, c2, c3), (k0, k1)) == words(answer)


def test_a_number_uses_the_top_53_bits_of_the_first_two_words() -> None:
    assert uniform(0, 0) == (0x6627E8D5E169C58D >> 11) / 2**53


def test_numbers_lie_in_the_unit_interval_and_spread_evenly() -> None:
    numbers = np.array([uniform(seed, position) for seed in range(20) for position in range(500)])
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    assert np.unique(numbers).size == numbers.size
    counts, _ = np.histogram(numbers, bins=100, range=(0, 1))
    assert ((counts - 100) ** 2 / 100).sum() < 99 + 5 * (2 * 99) ** 0.5
    assert (numbers * 2**53 % 1 == 0).all()


def test_seed_and_position_each_count_in_all_their_64_bits() -> None:
    places = [0, *(1 << bit for bit in range(64))]
    assert len({uniform(place, 7) for place in places}) == 65
    assert len({uniform(7, place) for place in places}) == 65
    assert uniform(3, 5) != uniform(5, 3)


def test_a_seed_of_any_size_is_taken_modulo_two_to_the_64() -> None:
    assert uniform(-1, 9) == uniform(2**64 - 1, 9)
    assert uniform(2**64 + 5, 9) == uniform(5, 9)
    assert uniform(-(2**63), 9) == uniform(2**63, 9)


def test_pick_gives_each_index_its_half_open_share() -> None:
    weights = np.array([1.0, 0.0, 2.0, 1.0])
    at = [0.0, 0.25 - 2**-53, 0.25, 0.75 - 2**-53, 0.75, 1 - 2**-53]
    assert [pick(weights, number) for number in at] == [0, 0, 2, 2, 3, 3]


@pytest.mark.parametrize("size", [511, 512, 513, 2000, 40_000])
def test_pick_among_many_finds_what_adding_up_one_by_one_finds(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(40):
        weights = rng.random(size) ** rng.integers(1, 40) * (rng.random(size) < rng.random() + 0.01)
        weights[rng.integers(size)] = 1.0
        numbers = [0.0, 1 - 2**-53, *rng.random(20)]
        for number in numbers:
            place = pick(weights, number)
            assert weights[place] > 0
            exact = np.cumsum(weights.astype(np.longdouble))
            target = number * exact[-1]
            assert exact[place] >= target * (1 - 1e-12)
            assert exact[place] - weights[place] <= target * (1 + 1e-12)
    integers = rng.integers(0, 3, size).astype(float)
    integers[-1] = 1.0
    ends = integers.cumsum()
    for number in rng.random(50):
        assert pick(integers, number) == ends.searchsorted(number * ends[-1], side="right")


def test_pick_never_takes_an_index_of_weight_zero() -> None:
    largest = 1 - 2**-53
    assert pick(np.array([0.0, 0.0, 5.0, 0.0]), 0.0) == 2
    assert pick(np.array([0.0, 0.0, 5.0, 0.0]), largest) == 2
    rng = np.random.default_rng(1)
    for _ in range(500):
        weights = rng.random(30) * (rng.random(30) < 0.3)
        weights[3] = 1.0
        for number in (0.0, largest, rng.random()):
            assert weights[pick(weights, number)] > 0
