"""A sampler that is told the likeliest tokens of a row chooses what it would choose from the row, to the last bit."""

from __future__ import annotations

import dataclasses
from array import array
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.runtime.sampler import Sampler
from kernels.likeliest import Likeliest

VOCABULARY = 700
PADDED = 720

Row = NDArray[np.float32]


def likeliest_of(row: Row, count: int) -> Likeliest:
    """By a sort of the whole row."""
    order = [int(i) for i in np.argsort(-row, kind="stable")[:count] if row[i] > -np.inf]
    ids = sorted(order)
    logits = array("d", [float(row[i]) for i in ids])
    ranking = array("i", [ids.index(i) for i in order])
    return Likeliest(array("i", ids), logits, ranking)


def make_sampler(params: SamplingParams) -> Sampler:
    return Sampler(
        params, seed=params.seed or 0, vocab_size=VOCABULARY, token_bytes=lambda i: b"<%d>" % i
    )


def random_row(dice: Random) -> Row:
    """From flat to steep, with ties, with tokens that cannot come, sometimes with likely padding."""
    row = np.random.default_rng(dice.randrange(1 << 32)).standard_normal(PADDED)
    row = row * dice.choice([0.01, 1.0, 3.0, 30.0, 1e30])
    if dice.random() < 0.4:
        row = np.round(row * dice.choice([1.0, 4.0])) / 4
    if dice.random() < 0.3:
        row[np.random.default_rng(dice.randrange(1 << 32)).random(PADDED) < 0.99] = -np.inf
        row[dice.randrange(VOCABULARY)] = 0.5
    if dice.random() < 0.8:
        row[VOCABULARY:] = -40.0
    return row.astype(np.float32)


def random_params(dice: Random) -> SamplingParams:
    return SamplingParams(
        temperature=dice.choice([0.0, 1e-300, 0.1, 0.8, 1.0, 2.5, 100.0]),
        top_k=dice.choice([1, 2, 3, 20, 40, 64, 200, 256]),
        top_p=dice.choice([0.0, 0.3, 0.9, 0.95, 1.0]),
        min_p=dice.choice([0.0, 0.02, 0.05, 0.5, 1.0]),
        typical_p=dice.choice([1.0, 1.0, 1.0, 0.0, 0.5, 0.95]),
        seed=dice.randrange(1 << 64),
    )


@pytest.mark.parametrize("seed", range(20))
def test_it_chooses_what_it_chooses_from_the_row(seed: int) -> None:
    dice, compared = Random(seed), 0
    for position in range(100):
        params, row = random_params(dice), random_row(dice)
        sampler = make_sampler(params)
        found = likeliest_of(row, sampler.num_likeliest)
        expected = sampler.sample(row, range(position), forgotten=seed)
        chosen = sampler.sample_among(found, position + seed)
        if chosen is None:
            assert max(found.ids) >= VOCABULARY
        else:
            assert chosen == expected, params
            compared += 1
    assert compared > 40


def test_it_needs_the_row_where_padding_is_likely() -> None:
    row = random_row(Random(4))
    row[VOCABULARY:] = -40.0
    found = likeliest_of(row, 40)
    assert make_sampler(SamplingParams()).sample_among(found, 1) is not None
    row[VOCABULARY] = 1e31
    assert make_sampler(SamplingParams()).sample_among(likeliest_of(row, 40), 1) is None


def test_it_asks_for_as_many_as_its_first_filter_keeps() -> None:
    default = SamplingParams()
    assert make_sampler(default).num_likeliest == default.top_k == 40
    assert make_sampler(dataclasses.replace(default, temperature=0.0)).num_likeliest == 1


@pytest.mark.parametrize(
    "change",
    [
        {"top_k": 0},
        {"top_k": 257},
        {"logprobs": 0},
        {"temperature": 0.0, "logprobs": 3},
        {"repetition_penalty": 1.1},
        {"presence_penalty": 0.1},
        {"frequency_penalty": 0.1},
        {"dry_multiplier": 0.8},
        {"logit_bias": ((3, 1.0),)},
    ],
    ids=str,
)
def test_it_asks_for_none_where_it_needs_the_whole_row(change: dict[str, object]) -> None:
    assert make_sampler(dataclasses.replace(SamplingParams(), **change)).num_likeliest == 0  # type: ignore[arg-type]
