"""The sampler chooses what plain sampling chooses, from the whole row or from what the kernels tell of it."""

from __future__ import annotations

import dataclasses
from array import array
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.errors import EngineError, InvalidRequest
from engine.runtime.sampler import Sampler
from engine.runtime.sampling_changes import Changed
from engine.runtime.sampling_shortlist import likeliest_after
from engine.runtime.token_mask import TokenMask
from fakes.plain_sampler import plain_token
from kernels.wishes import Likeliest

VOCABULARY = 700
PADDED = 720
INF = np.inf

Row = NDArray[np.float32]


def token_bytes(token_id: int) -> bytes:
    return b"<%d>" % token_id if token_id % 9 else b"\n"


def likeliest_of(row: Row, count: int) -> Likeliest | None:
    """By a sort of the whole row."""
    if not count or not (row < INF).all():
        return None
    order = [int(i) for i in np.argsort(-row, kind="stable")[:count] if row[i] > -INF]
    ids = sorted(order)
    logits = array("d", [float(row[i]) for i in ids])
    ranking = array("i", [ids.index(i) for i in order])
    return Likeliest(array("i", ids), logits, ranking) if ids else None


def make_sampler(params: SamplingParams, vocab: int = VOCABULARY) -> Sampler:
    return Sampler(params, seed=params.seed or 0, vocab_size=vocab, token_bytes=token_bytes)


def random_row(dice: Random) -> Row:
    """From flat to steep, with ties, with tokens that cannot come, sometimes with likely padding."""
    row = np.random.default_rng(dice.randrange(1 << 32)).standard_normal(PADDED)
    row = row * dice.choice([0.01, 1.0, 3.0, 30.0, 1e30])
    if dice.random() < 0.4:
        row = np.round(row * dice.choice([1.0, 4.0])) / 4
    if dice.random() < 0.3:
        row[np.random.default_rng(dice.randrange(1 << 32)).random(PADDED) < 0.99] = -INF
        row[dice.randrange(VOCABULARY)] = 0.5
    if dice.random() < 0.8:
        row[VOCABULARY:] = -40.0
    if dice.random() < 0.05:
        row[dice.randrange(PADDED)] = dice.choice([np.nan, INF])
    return row.astype(np.float32)


def random_filters(dice: Random) -> SamplingParams:
    return SamplingParams(
        temperature=dice.choice([0.0, 1e-300, 0.1, 0.8, 1.0, 2.5, 100.0]),
        top_k=dice.choice([0, 1, 2, 3, 20, 40, 64, 200, 256, 300]),
        top_p=dice.choice([0.0, 0.3, 0.9, 0.95, 1.0]),
        min_p=dice.choice([0.0, 0.02, 0.05, 0.5, 1.0]),
        typical_p=dice.choice([1.0, 1.0, 1.0, 0.0, 0.5, 0.95]),
        seed=dice.randrange(1 << 64),
    )


def random_params(dice: Random) -> SamplingParams:
    """Filters, and some of the stages before them."""
    biases = [(dice.randrange(VOCABULARY), dice.choice([-INF, -100.0, -2.0, 5.0])) for _ in "123"]
    if dice.random() < 0.05:
        biases.append((dice.randrange(VOCABULARY), INF))
    return dataclasses.replace(
        random_filters(dice),
        logit_bias=tuple(dice.choice([[], biases])),
        repetition_penalty=dice.choice([1.0, 1.0, 1.1, 0.5, 30.0]),
        presence_penalty=dice.choice([0.0, 0.0, 0.4, -3.0]),
        frequency_penalty=dice.choice([0.0, 0.0, 0.2, 40.0]),
        penalty_last_n=dice.choice([-1, 0, 5, 64, 600]),
        dry_multiplier=dice.choice([0.0, 0.8, 20.0]),
        dry_base=dice.choice([1.0, 1.75]),
        dry_allowed_length=dice.choice([1, 2, 4]),
        dry_penalty_last_n=dice.choice([-1, 0, 30]),
    )


def random_text(dice: Random) -> list[int]:
    kinds = dice.choice([2, 12, PADDED])
    return [dice.randrange(kinds) for _ in range(dice.choice([1, 2, 60, 200]))]


def told(sampler: Sampler, row: Row, position: int) -> Likeliest | None:
    """What the kernels would tell, with the draw left to the sampler."""
    return likeliest_of(row, sampler.wish(position).num_likeliest)


@pytest.mark.parametrize("seed", range(12))
def test_it_chooses_what_plain_sampling_chooses(seed: int) -> None:
    dice, told_of = Random(seed), 0
    for position in range(60):
        params, text, row = random_params(dice), random_text(dice), random_row(dice)
        sampler, forgotten = make_sampler(params), dice.choice([0, 0, 7])
        for _ in range(5):  # a text that grows, and now and then another one
            at = len(text) + forgotten
            expected = plain_token(
                row[:VOCABULARY], text, params, position=at, token_bytes=token_bytes
            )
            for found in (None, told(sampler, row, at)):
                told_of += found is not None
                try:
                    chosen = sampler.sample(row, text, forgotten=forgotten, found=found)
                except EngineError:
                    assert expected is None
                else:
                    assert chosen.token_id == expected, (params, position)
            row = random_row(dice)
            text.append(dice.choice(text))
            if dice.random() < 0.1:
                text = random_text(dice)
    assert told_of > 60


@pytest.mark.parametrize("seed", range(6))
def test_it_chooses_what_it_chooses_from_the_row_where_nothing_is_changed(seed: int) -> None:
    dice, compared = Random(seed), 0
    for position in range(100):
        params, row = random_filters(dice), random_row(dice)
        sampler = make_sampler(params)
        found = told(sampler, row, position)
        expected = sampler.sample(row, range(position), forgotten=seed)
        assert sampler.sample(row, range(position), forgotten=seed, found=found) == expected
        compared += found is not None
    assert compared > 40


@pytest.mark.parametrize("seed", range(6))
def test_what_a_mask_leaves_is_chosen_from_as_if_nothing_else_had_a_chance(seed: int) -> None:
    dice, told_of = Random(seed), 0
    for _ in range(100):
        params, text, row = random_params(dice), random_text(dice), random_row(dice)
        mask = TokenMask(PADDED)
        bits = np.random.default_rng(dice.randrange(1 << 32)).random(mask.words.size * 32)
        bits = bits < dice.choice([0.01, 0.3, 1.0])
        mask.words[:] = np.packbits(bits, bitorder="little").view(np.uint32)
        left = np.where(bits[:PADDED], row, -INF).astype(np.float32)
        left[VOCABULARY:] = -INF  # as the kernels leave it
        sampler, at = make_sampler(params), len(text)
        expected = plain_token(
            left[:VOCABULARY], text, params, position=at, token_bytes=token_bytes
        )
        wish = sampler.wish(at, mask)
        assert wish.allowed == (mask.address if wish.num_likeliest else 0)
        found = likeliest_of(left, wish.num_likeliest)
        told_of += found is not None
        for given, told in ((row, None), (left, found)):
            try:
                chosen = sampler.sample(given, text, found=told, mask=mask)
            except EngineError:
                assert expected is None
            else:
                assert chosen.token_id == expected, params
    assert told_of > 20


def test_where_a_mask_leaves_nothing_the_grammar_is_to_blame() -> None:
    mask = TokenMask(PADDED)
    with pytest.raises(InvalidRequest, match="the grammar leaves no token") as caught:
        make_sampler(SamplingParams()).sample(random_row(Random(4)), [1], mask=mask)
    assert caught.value.param == "grammar"


def test_it_needs_no_row_where_changes_leave_the_likeliest_known() -> None:
    params = SamplingParams(repetition_penalty=1.2, logit_bias=((3, -2.0), (4, 9.0)), seed=4)
    row = np.random.default_rng(6).standard_normal(PADDED).astype(np.float32)
    row[VOCABULARY:] = -40.0
    text = list(range(100, 180))
    expected = make_sampler(params).sample(row, text)
    sampler = make_sampler(params)
    found = told(sampler, row, len(text))
    blank = np.full_like(row, np.nan)
    touched = [3, 4, *text]
    blank[touched] = row[touched]
    assert sampler.sample(blank, text, found=found) == expected


@pytest.mark.parametrize(
    ("raised", "is_known"), [(0.25, False), (0.5, True), (0.75, True), (INF, False)]
)
def test_an_unknown_token_may_be_likelier_than_a_changed_one(raised: float, is_known: bool) -> None:
    row = np.array([0.5, 3.0, 2.0, 1.0, 0.5, 0.0], dtype=np.float32)
    found = likeliest_of(row, 4)  # not token 4, of equals the later one
    assert found is not None
    changed = Changed(np.array([1, 2, 5]), np.array([-9.0, -9.0, raised]))
    after = likeliest_after(found, changed, 2, is_all=False, vocab_size=6)
    known = likeliest_after(found, changed, 2, is_all=True, vocab_size=6)
    if raised == INF:
        assert after is known is None
        return
    # two at least come no later than token 0, the last that was found
    assert after is not None
    assert sorted(after.ids) == sorted({0.25: [0, 3], 0.5: [0, 3], 0.75: [3, 5]}[raised])
    third = likeliest_after(found, changed, 3, is_all=False, vocab_size=6)
    assert (third is not None) == (raised > 0.5), "token 4 comes before token 5 at 0.5"
    assert is_known or third is None


def test_it_needs_the_row_where_padding_is_likely() -> None:
    row = random_row(Random(4))
    row[VOCABULARY:] = -40.0
    params = SamplingParams(typical_p=0.9)
    sampler = make_sampler(params)
    expected = sampler.sample(row, [1])
    row[VOCABULARY] = 1e31
    assert sampler.sample(row, [1], found=told(sampler, row, 1)) == expected


def test_it_takes_the_token_that_the_kernels_drew() -> None:
    row = random_row(Random(4))
    assert make_sampler(SamplingParams()).sample(row, [1], found=31).token_id == 31


def test_it_wishes_for_a_token_drawn_from_as_many_as_its_first_filter_keeps() -> None:
    default = SamplingParams()
    wish = make_sampler(dataclasses.replace(default, seed=-1)).wish(9)
    assert wish.is_drawn
    assert (wish.num_likeliest, wish.vocabulary) == (default.top_k, VOCABULARY) == (40, VOCABULARY)
    assert (wish.temperature, wish.top_p, wish.min_p) == (0.8, 0.95, 0.05)
    assert (wish.seed, wish.position) == (2**64 - 1, 9)
    assert make_sampler(dataclasses.replace(default, temperature=0.0)).wish(1).num_likeliest == 1


@pytest.mark.parametrize(
    ("change", "count"),
    [
        ({"top_k": 0}, 0),
        ({"top_k": 257}, 0),
        ({"logprobs": 0}, 0),
        ({"temperature": 0.0, "logprobs": 3}, 0),
        ({"typical_p": 0.9}, 40),
        ({"repetition_penalty": 1.1}, 256),
        ({"presence_penalty": 0.1}, 256),
        ({"frequency_penalty": 0.1}, 256),
        ({"dry_multiplier": 0.8}, 256),
        ({"logit_bias": ((3, 1.0),)}, 256),
    ],
    ids=str,
)
def test_it_wishes_for_the_likeliest_where_a_draw_takes_more_than_they_tell(
    change: dict[str, object], count: int
) -> None:
    wish = make_sampler(dataclasses.replace(SamplingParams(), **change)).wish(5)  # type: ignore[arg-type]
    assert not wish.is_drawn
    assert wish.num_likeliest == count
