"""Logit bias and the three penalties, on cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.api import SamplingParams
from engine.errors import InvalidRequest
from engine.runtime.sampling_changes import LogitChanges, Stage
from engine.runtime.sampling_penalties import LogitBias, SeenPenalty


def changed(stage: Stage, logits: list[float], token_ids: list[int]) -> list[float]:
    row = np.array(logits)
    after = LogitChanges([stage]).after(token_ids, row)
    if after is not None:
        row[after.ids] = after.logits
    return row.tolist()


def penalised(logits: list[float], token_ids: list[int], params: SamplingParams) -> list[float]:
    stage = SeenPenalty(params, vocab_size=len(logits))
    return changed(stage, logits, token_ids)


def biased(logits: list[float], *pairs: tuple[int, float]) -> list[float]:
    return changed(LogitBias(pairs, vocab_size=len(logits)), logits, [])


def test_repetition_divides_positive_and_multiplies_negative_logits() -> None:
    params = SamplingParams(repetition_penalty=2.0)
    assert penalised([3.0, -3.0, 0.25, 5.0], [0, 1, 2, 0], params) == [1.5, -6.0, 0.125, 5.0]


def test_presence_counts_once_and_frequency_every_time() -> None:
    params = SamplingParams(presence_penalty=0.5, frequency_penalty=0.25)
    assert penalised([1.0, 1.0, 1.0], [0, 2, 0, 0], params) == [-0.25, 1.0, 0.25]


def test_repetition_comes_before_presence_and_frequency() -> None:
    params = SamplingParams(repetition_penalty=2.0, presence_penalty=1.0, frequency_penalty=0.5)
    assert penalised([4.0, -1.0], [0, 0, 1], params) == [4 / 2 - 1 - 2 * 0.5, -1 * 2 - 1 - 0.5]


def test_negative_penalties_reward() -> None:
    params = SamplingParams(presence_penalty=-1.0, frequency_penalty=-0.5)
    assert penalised([0.0, 0.0], [1, 1], params) == [0.0, 2.0]


@pytest.mark.parametrize(
    ("last_n", "seen"),
    [(0, []), (1, [4]), (3, [2, 3, 4]), (64, [0, 1, 2, 3, 4]), (-1, [0, 1, 2, 3, 4])],
)
def test_penalties_look_back_over_the_last_n_tokens_only(last_n: int, seen: list[int]) -> None:
    params = SamplingParams(presence_penalty=1.0, penalty_last_n=last_n)
    row = penalised([0.0] * 6, [0, 1, 2, 3, 4], params)
    assert [token for token, logit in enumerate(row) if logit == -1.0] == seen


def test_neutral_penalties_change_nothing() -> None:
    assert penalised([1.0, -2.0], [0, 1, 1], SamplingParams()) == [1.0, -2.0]


def test_penalties_leave_forbidden_tokens_forbidden_and_skip_ids_beyond_the_row() -> None:
    params = SamplingParams(repetition_penalty=0.5, presence_penalty=-1.0)
    assert penalised([-math.inf, 1.0], [0, 1, 7], params) == [-math.inf, 3.0]


def test_bias_is_added_and_biases_of_one_id_are_summed() -> None:
    assert biased([1.0, 2.0, 3.0], (2, -1.5), (0, 10.0), (2, 0.25)) == [11.0, 2.0, 1.75]


@pytest.mark.parametrize("bias", [-100.0, -1e9, -math.inf])
def test_a_bias_of_minus_100_or_less_forbids(bias: float) -> None:
    assert biased([50.0, math.inf], (0, bias), (1, bias)) == [-math.inf, -math.inf]
    assert biased([50.0, 0.0], (0, -99.5)) == [-49.5, 0.0]


@pytest.mark.parametrize("token_id", [-1, 5, 1 << 70])
def test_a_bias_outside_the_vocabulary_is_refused_by_id_and_limit(token_id: int) -> None:
    with pytest.raises(
        InvalidRequest, match=rf"token id {token_id}, this model has ids 0 to 4"
    ) as caught:
        LogitBias([(1, 0.5), (token_id, 1.0)], vocab_size=5)
    assert caught.value.param == "logit_bias"


@pytest.mark.parametrize("pairs", [[(2, math.nan)], [(2, math.inf), (2, -math.inf)]])
def test_a_bias_that_is_no_number_is_refused(pairs: list[tuple[int, float]]) -> None:
    with pytest.raises(InvalidRequest, match="token id 2 is not a number"):
        LogitBias(pairs, vocab_size=5)
