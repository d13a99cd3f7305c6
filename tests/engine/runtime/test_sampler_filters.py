"""Each filter against a slow, direct definition of its own, and at its edges."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.runtime.sampling_filters import (
    keep_likely,
    keep_typical,
    likeliest,
    surviving_tokens,
)
from fakes.plain_sampler import plain_typical

NO_FILTER = SamplingParams(top_k=0, top_p=1.0, min_p=0.0, typical_p=1.0)


def softmax(logits: list[float]) -> list[float]:
    peak = max(logits)
    shares = [math.exp(logit - peak) for logit in logits]
    total = math.fsum(shares)
    return [share / total for share in shares]


def first_reaching(order: list[int], shares: list[float], mass: float) -> list[int]:
    kept, total = [], 0.0
    for index in order:
        kept.append(index)
        total += shares[index]
        if total >= mass:
            break
    return sorted(kept)


def slow_top_k(logits: list[float], k: int) -> list[int]:
    return sorted(sorted(range(len(logits)), key=lambda i: (-logits[i], i))[:k])


def slow_top_p(logits: list[float], mass: float) -> list[int]:
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    return first_reaching(order, softmax(logits), mass)


def slow_min_p(logits: list[float], share: float) -> list[int]:
    shares = softmax(logits)
    peak = max(shares)
    return [i for i, p in enumerate(shares) if p >= share * peak]


def slow_typical(logits: list[float], mass: float) -> list[int]:
    shares = softmax(logits)
    entropy = -math.fsum(p * math.log(p) for p in shares)
    order = sorted(range(len(logits)), key=lambda i: (abs(-math.log(shares[i]) - entropy), i))
    return first_reaching(order, shares, mass)


def survivors(row: NDArray[np.float64], params: SamplingParams) -> list[int]:
    ids = surviving_tokens(row, params)
    return list(range(row.size)) if ids is None else ids.tolist()


def random_rows(seed: int, count: int = 60) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 400, count)
    return [(rng.standard_normal(n) * rng.choice([0.3, 2.0, 8.0])).tolist() for n in sizes]


@pytest.mark.parametrize("k", [1, 2, 5, 40, 100, 399, 5000])
def test_top_k_keeps_the_k_largest(k: int) -> None:
    for row in random_rows(k):
        assert likeliest(np.array(row), k).tolist() == slow_top_k(row, k)


def test_top_k_gives_ties_to_the_lowest_ids() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        row = rng.integers(0, 4, int(rng.integers(1, 1000))).astype(float)
        k = int(rng.integers(1, 60))
        assert likeliest(row, k).tolist() == slow_top_k(row.tolist(), k)


def test_top_k_leaves_out_what_is_forbidden() -> None:
    row = np.full(1000, -np.inf)
    row[[7, 500, 999]] = [1.0, -5.0, 2.0]
    assert likeliest(row, 40).tolist() == [7, 500, 999]
    assert likeliest(row, 2).tolist() == [7, 999]


@pytest.mark.parametrize("mass", [0.0, 0.1, 0.5, 0.9, 0.95, 0.999])
def test_top_p_keeps_the_fewest_likeliest_that_reach_p(mass: float) -> None:
    for row in random_rows(11):
        assert keep_likely(np.array(row), top_p=mass, min_p=0.0).tolist() == slow_top_p(row, mass)


def test_top_p_skips_the_sorting_of_negligible_tokens_without_changing_the_result() -> None:
    row = np.random.default_rng(8).standard_normal(20_000) * 4
    assert keep_likely(row, top_p=0.95, min_p=0.0).tolist() == slow_top_p(row.tolist(), 0.95)


@pytest.mark.parametrize("share", [0.001, 0.05, 0.5, 0.9, 1.0])
def test_min_p_keeps_tokens_near_enough_to_the_likeliest(share: float) -> None:
    for row in random_rows(12):
        assert keep_likely(np.array(row), top_p=1.0, min_p=share).tolist() == slow_min_p(row, share)


@pytest.mark.parametrize("mass", [0.0, 0.2, 0.5, 0.9, 0.99])
def test_typical_keeps_the_tokens_of_expected_surprise(mass: float) -> None:
    for row in random_rows(13):
        assert keep_typical(np.array(row), mass).tolist() == slow_typical(row, mass)


@pytest.mark.parametrize("mass", [0.0, 0.05, 0.5, 0.9, 0.99, 1 - 1e-9])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0, 3.0, 12.0, 1e30])
def test_typical_sorts_few_of_many_tokens_without_changing_the_result(
    mass: float, spread: float
) -> None:
    rng = np.random.default_rng(int(mass * 100))
    for size in (4097, 30_000):
        row = rng.standard_normal(size) * spread
        for logits in (row, np.round(row * 2) / 2, np.minimum(row, 0.0), np.maximum(row, -1.0)):
            assert keep_typical(logits, mass).tolist() == plain_typical(logits, mass).tolist()


def test_top_p_of_zero_keeps_the_likeliest_only_lowest_id_first() -> None:
    assert keep_likely(np.array([1.0, 3.0, 3.0, 2.0]), top_p=0.0, min_p=0.0).tolist() == [1]


def test_min_p_of_one_keeps_all_that_tie_for_likeliest() -> None:
    assert keep_likely(np.array([1.0, 3.0, 3.0, 2.0]), top_p=1.0, min_p=1.0).tolist() == [1, 2]


def test_everything_off_keeps_every_token_that_is_not_forbidden() -> None:
    row = np.array([0.0, -np.inf, -800.0, 3.0])
    assert surviving_tokens(row, NO_FILTER) is None, "all, and what is forbidden weighs nothing"
    almost_off = dataclasses.replace(NO_FILTER, min_p=5e-324)
    assert survivors(row[[0, 1, 3]], almost_off) == [0, 2]


def test_one_token_left_survives_every_filter() -> None:
    row = np.full(300, -np.inf)
    row[123] = -1e302
    params = SamplingParams(top_k=1, top_p=0.0, min_p=1.0, typical_p=0.0)
    assert survivors(row, params) == [123]


def test_filters_follow_one_another_on_renormalised_probabilities() -> None:
    rng = np.random.default_rng(21)
    for _ in range(200):
        row = (rng.standard_normal(int(rng.integers(2, 300))) * 2).tolist()
        params = SamplingParams(
            top_k=int(rng.integers(0, 80)),
            typical_p=float(rng.choice([0.4, 0.8, 1.0])),
            top_p=float(rng.choice([0.3, 0.9, 1.0])),
            min_p=float(rng.choice([0.0, 0.05, 0.4])),
        )
        ids = slow_top_k(row, params.top_k) if params.top_k else list(range(len(row)))
        for slow, value, is_on in (
            (slow_typical, params.typical_p, params.typical_p < 1),
            (slow_top_p, params.top_p, params.top_p < 1),
            (slow_min_p, params.min_p, params.min_p > 0),
        ):
            if is_on:
                ids = [ids[i] for i in slow([row[i] for i in ids], value)]
        assert survivors(np.array(row), params) == ids
