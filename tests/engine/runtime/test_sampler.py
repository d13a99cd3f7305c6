"""The sampler as the engine uses it: distributions, exactness, order of stages, log probabilities, broken logits."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.api import SamplingParams
from engine.errors import DeviceFailure, EngineError, InvalidRequest
from engine.runtime.sampler import SampledToken, Sampler

GREEDY = SamplingParams(temperature=0.0)
PLAIN = SamplingParams(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
INF = math.inf


def make_sampler(params: SamplingParams, *, vocab: int, seed: int = 1) -> Sampler:
    return Sampler(
        params, seed=seed, vocab_size=vocab, token_bytes=lambda token_id: b"<%d>" % token_id
    )


def random_logits(seed: int, vocab: int = 500) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal(vocab) * 3).astype(np.float32)


def sample_id(logits: list[float], params: SamplingParams, token_ids: tuple[int, ...] = ()) -> int:
    row = np.array(logits, dtype=np.float32)
    return make_sampler(params, vocab=row.size).sample(row, token_ids).token_id


def draw_many(
    logits: NDArray[np.float32], params: SamplingParams, count: int = 6000
) -> Counter[int]:
    sampler = make_sampler(params, vocab=logits.size, seed=2026)
    return Counter(sampler.sample(logits, range(position)).token_id for position in range(count))


def assert_distributed(counts: Counter[int], expected: dict[int, float]) -> None:
    """Chi-square: a right sampler exceeds five standard deviations once in a million seeds, and the seed is fixed."""
    total = counts.total()
    assert set(counts) <= set(expected)
    chi_square = sum((counts[i] - total * p) ** 2 / (total * p) for i, p in expected.items())
    freedom = len(expected) - 1
    assert chi_square < freedom + 5 * (2 * freedom) ** 0.5


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_draws_follow_the_softmax_at_their_temperature(temperature: float) -> None:
    logits = np.array([0.0, 1.5, -1.0, 2.0, 0.5, 2.0], dtype=np.float32)
    shares = np.exp(logits.astype(float) / temperature)
    expected = dict(enumerate((shares / shares.sum()).tolist()))
    params = dataclasses.replace(PLAIN, temperature=temperature)
    assert_distributed(draw_many(logits, params), expected)


def test_draws_stay_within_the_filters_and_follow_what_is_left() -> None:
    logits = np.array([1.0, 4.0, 3.0, -2.0, 3.5, 0.0], dtype=np.float32)
    shares = np.exp(logits.astype(float)[[1, 2, 4]])
    expected = dict(zip([1, 2, 4], (shares / shares.sum()).tolist(), strict=True))
    assert_distributed(draw_many(logits, dataclasses.replace(PLAIN, top_k=3)), expected)


def test_different_seeds_give_independent_draws() -> None:
    logits = np.zeros(8, dtype=np.float32)
    counts = Counter(
        make_sampler(PLAIN, vocab=8, seed=seed).sample(logits, range(5)).token_id
        for seed in range(4000)
    )
    assert_distributed(counts, dict.fromkeys(range(8), 1 / 8))


def test_greedy_takes_the_largest_logit_and_the_lowest_id_of_equals() -> None:
    assert sample_id([1.0, 5.0, 2.0, 5.0], GREEDY) == 1
    for seed in range(20):
        logits = random_logits(seed)
        token = make_sampler(GREEDY, vocab=500, seed=seed).sample(logits, range(seed))
        assert token == SampledToken(int(logits.argmax()))


def test_greedy_ignores_the_filters_but_not_bias_penalties_and_dry() -> None:
    logits = [1.0, 5.0, 4.5, 4.0]
    greedy = dataclasses.replace(GREEDY, top_k=1, top_p=0.0, min_p=1.0, typical_p=0.0)
    assert sample_id(logits, greedy) == 1
    assert sample_id(logits, dataclasses.replace(greedy, logit_bias=((1, -1.0),))) == 2
    assert sample_id(logits, dataclasses.replace(greedy, presence_penalty=2.0), (1, 2)) == 3
    assert sample_id(logits, dataclasses.replace(greedy, dry_multiplier=9.0), (3, 0, 1, 3, 0)) == 2


def test_bias_comes_before_the_repetition_penalty_and_both_before_top_k() -> None:
    # (1 + 3) / 2 = 2 loses to 2.5; in the other order 1 / 2 + 3 = 3.5 would win
    params = SamplingParams(top_k=1, logit_bias=((0, 3.0),), repetition_penalty=2.0)
    assert sample_id([1.0, 2.5], params, (0,)) == 1


def test_the_repetition_penalty_comes_before_dry() -> None:
    # token 0: 3 / 2 - 2 loses to 0; in the other order (3 - 2) / 2 would win
    params = dataclasses.replace(
        GREEDY, repetition_penalty=2.0, dry_multiplier=2.0, dry_allowed_length=1
    )
    assert sample_id([3.0, -9.0, 0.0], params, (1, 0, 1)) == 2


def test_temperature_comes_after_the_filters() -> None:
    # at temperature 100 all tokens are nearly alike, yet top-p has seen the probabilities before that
    params = dataclasses.replace(PLAIN, temperature=100.0, top_p=0.9)
    assert draw_many(np.array([0.0, 9.0, 1.0], dtype=np.float32), params, 300) == {1: 300}


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e-6])
def test_temperatures_near_zero_are_as_good_as_greedy(temperature: float) -> None:
    params = dataclasses.replace(PLAIN, temperature=temperature)
    for seed in range(20):
        logits = random_logits(seed)
        assert make_sampler(params, vocab=500).sample(logits, [1]).token_id == int(logits.argmax())


def test_a_draw_depends_on_nothing_that_was_drawn_before() -> None:
    rows = [random_logits(position) for position in range(40)]
    texts = [list(range(position + 3)) for position in range(40)]
    params = SamplingParams(seed=5, logprobs=3, repetition_penalty=1.2, dry_multiplier=0.8)
    alone = [make_sampler(params, vocab=500).sample(rows[i], texts[i]) for i in range(40)]
    sampler = make_sampler(params, vocab=500)
    for i in np.random.default_rng(1).integers(0, 40, 200).tolist():
        assert sampler.sample(rows[i], texts[i]) == alone[i]


def test_a_row_gives_the_same_bits_wherever_it_lies_in_memory() -> None:
    row = random_logits(4, vocab=1003)
    sampler = make_sampler(SamplingParams(top_k=0, logprobs=20, typical_p=0.9), vocab=1003)
    expected = sampler.sample(row, [1, 2])
    for offset in range(1, 64, 3):
        buffer = np.zeros(row.nbytes + offset, dtype=np.uint8)
        moved = np.frombuffer(buffer[offset:].data, dtype=np.float32)
        moved[:] = row
        assert sampler.sample(moved, [1, 2]) == expected
    strided = np.zeros((1003, 5), dtype=np.float32)
    strided[:, 3] = row
    assert sampler.sample(strided[:, 3], [1, 2]) == expected


def test_the_callers_logits_are_left_as_they_were() -> None:
    logits = random_logits(6)
    logits[[3, 4]] = [np.nan, np.inf]
    before = logits.tobytes()
    params = SamplingParams(logit_bias=((1, -100.0),), repetition_penalty=2.0, logprobs=2)
    make_sampler(params, vocab=500).sample(logits, [1, 2, 3])
    assert logits.tobytes() == before


def test_padding_beyond_the_vocabulary_is_never_chosen_nor_counted() -> None:
    logits = np.array([0.0, 1.0, 99.0, 99.0], dtype=np.float32)
    sampler = make_sampler(SamplingParams(temperature=0.0, logprobs=4), vocab=2)
    token = sampler.sample(logits, [0])
    assert token.token_id == 1
    assert [token_id for token_id, _ in token.top] == [1, 0]
    assert token.logprob == pytest.approx(-math.log1p(math.exp(-1)), abs=1e-15)


def test_logprobs_are_the_log_softmax_of_the_models_own_logits() -> None:
    for seed in range(30):
        logits = random_logits(seed)
        exact = logits.astype(np.longdouble)
        log_softmax = exact - np.log(np.exp(exact).sum())
        params = SamplingParams(
            logprobs=7,
            logit_bias=((int(logits.argmax()), -100.0),),
            presence_penalty=5.0,
            temperature=2.0,
        )
        token = make_sampler(params, vocab=500, seed=seed).sample(logits, [1, 2, 3])
        assert token.logprob == pytest.approx(float(log_softmax[token.token_id]), abs=1e-12)
        order = sorted(range(500), key=lambda i: (-logits[i], i))[:7]
        assert [token_id for token_id, _ in token.top] == order
        assert [p for _, p in token.top] == pytest.approx(
            [float(log_softmax[i]) for i in order], abs=1e-12
        )


def test_logprobs_come_as_asked_for() -> None:
    logits = np.zeros(5, dtype=np.float32)
    logits[4] = -INF
    none = make_sampler(GREEDY, vocab=5).sample(logits, [])
    assert none == SampledToken(0, None, ())
    only_chosen = make_sampler(dataclasses.replace(GREEDY, logprobs=0), vocab=5).sample(logits, [])
    assert only_chosen == SampledToken(0, pytest.approx(-math.log(4)), ())  # type: ignore[arg-type]
    all_of_them = make_sampler(dataclasses.replace(GREEDY, logprobs=20), vocab=5).sample(logits, [])
    assert [token_id for token_id, _ in all_of_them.top] == [0, 1, 2, 3]


@pytest.mark.parametrize("params", [GREEDY, PLAIN, SamplingParams(typical_p=0.5)])
def test_nan_is_never_chosen_and_infinity_always(params: SamplingParams) -> None:
    for position in range(30):
        history = tuple(range(position))
        assert sample_id([math.nan, -INF, 1.0, math.nan], params, history) == 2
        assert sample_id([math.nan, 1e30, INF, -INF], params, history) == 2
    assert sample_id([0.0, INF, INF], GREEDY) == 1
    assert draw_many(np.array([0.0, INF, INF], dtype=np.float32), PLAIN, 50).keys() == {1, 2}


def test_logprobs_of_broken_logits_are_still_probabilities() -> None:
    params = dataclasses.replace(GREEDY, logprobs=3)
    row = np.array([math.nan, INF, 3.0, INF], dtype=np.float32)
    token = make_sampler(params, vocab=4).sample(row, [])
    assert token == SampledToken(1, pytest.approx(-math.log(2)), token.top)  # type: ignore[arg-type]
    assert [token_id for token_id, _ in token.top] == [1, 3]


def test_an_infinite_bias_forces_a_token_and_cannot_revive_an_impossible_one() -> None:
    params = dataclasses.replace(PLAIN, logit_bias=((1, INF),))
    assert sample_id([9.0, 0.0, 9.0], params) == 1
    assert sample_id([9.0, -INF, -INF], params) == 0


@pytest.mark.parametrize("params", [GREEDY, PLAIN])
def test_a_bias_that_forbids_everything_ends_in_an_error_of_the_request(
    params: SamplingParams,
) -> None:
    params = dataclasses.replace(params, logit_bias=((0, -100.0), (2, -INF)))
    with pytest.raises(
        InvalidRequest, match="forbids every token that could come at position 1"
    ) as caught:
        sample_id([1.0, -INF, 5.0], params, (0,))
    assert caught.value.param == "logit_bias"


@pytest.mark.parametrize("value", [math.nan, -INF])
def test_a_row_without_any_number_ends_in_an_error_of_the_device(value: float) -> None:
    with pytest.raises(DeviceFailure, match="any of its 3 tokens at position 2"):
        sample_id([value] * 3, SamplingParams(logit_bias=((0, -100.0),)), (0, 1))


def test_bad_parameters_are_refused_when_the_sampler_is_made() -> None:
    with pytest.raises(InvalidRequest, match="token id 9, this model has ids 0 to 4"):
        make_sampler(SamplingParams(logit_bias=((9, 1.0),)), vocab=5)
    with pytest.raises(InvalidRequest, match="empty string"):
        make_sampler(SamplingParams(dry_sequence_breakers=("",)), vocab=5)


def test_penalties_of_a_lone_token_cannot_make_it_impossible() -> None:
    params = SamplingParams(dry_multiplier=100.0, dry_base=100.0, repetition_penalty=100.0)
    assert sample_id([-INF, 1.0, -INF], params, (1,) * 2000) == 1


def random_params(rng: np.random.Generator, vocab: int) -> SamplingParams:
    """Parameters from all over their ranges, ends included."""
    ids = rng.integers(0, vocab, 3).tolist()
    return SamplingParams(
        temperature=float(rng.choice([0.0, 1e-9, 0.8, 100.0])),
        top_k=int(rng.choice([0, 1, 40, 1 << 30])),
        top_p=float(rng.choice([0.0, 0.5, 0.95, 1.0])),
        min_p=float(rng.choice([0.0, 0.05, 1.0])),
        typical_p=float(rng.choice([0.0, 0.5, 1.0])),
        repetition_penalty=float(rng.choice([0.01, 1.0, 1.1, 100.0])),
        presence_penalty=float(rng.choice([-100.0, 0.0, 1.0])),
        frequency_penalty=float(rng.choice([0.0, 0.3, 100.0])),
        penalty_last_n=int(rng.choice([-1, 0, 1, 64])),
        dry_multiplier=float(rng.choice([0.0, 0.8, 100.0])),
        dry_base=float(rng.choice([1.0, 1.75, 100.0])),
        dry_allowed_length=int(rng.choice([1, 2, 1 << 20])),
        dry_penalty_last_n=int(rng.choice([-1, 0, 5])),
        logit_bias=tuple((i, float(rng.choice([-INF, -100.0, 3.0, INF]))) for i in set(ids)),
        logprobs=[None, 0, 1, 20][int(rng.integers(4))],
    )


def test_random_parameters_on_damaged_rows_give_a_possible_token_or_an_engine_error() -> None:
    rng = np.random.default_rng(99)
    errors = 0
    for case in range(1500):
        vocab = int(rng.integers(1, 200))
        logits = random_logits(case, vocab)
        for value in (np.nan, -np.inf, np.inf, 3e38, -3e38, 0.0):
            if rng.random() < 0.3:
                logits[rng.integers(0, vocab, int(rng.integers(1, vocab + 1)))] = value
        params = random_params(rng, vocab)
        text = rng.integers(0, vocab, int(rng.integers(0, 100))).tolist()
        try:
            token = make_sampler(params, vocab=vocab, seed=case).sample(logits, text)
        except EngineError:
            errors += 1
            continue
        assert logits[token.token_id] > -np.inf  # neither NaN nor impossible
        assert dict(params.logit_bias).get(token.token_id, 0.0) > -100.0
        assert token.logprob is None or token.logprob <= 1e-9
        assert token == make_sampler(params, vocab=vocab, seed=case).sample(logits, text)
    assert 0 < errors < 300
