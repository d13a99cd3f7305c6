"""The likeliest tokens as the native kernels find them: those of a sort of the whole row, whatever stands in it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes.native_rig import ModelWeights, compiled, needs_kernels, one_page_each, rows_program
from kernels.cpu.declarations import MOST_LIKELIEST
from kernels.cpu.library import NativeError

pytestmark = needs_kernels

INF = np.float32(np.inf)


class Found(NamedTuple):
    """A copy of what was found of a row."""

    ids: NDArray[np.int32]
    logits: NDArray[np.float64]
    ranking: NDArray[np.int32]


def find(rows: NDArray[np.float32], wanted: list[int]) -> list[Found | None]:
    """What the kernels find in rows that stand there as logits."""
    weights = ModelWeights()
    recorder, x = rows_program(weights, rows)
    program = recorder.finish(recorder.take_outputs(x))
    with compiled(program, weights.source()) as native:
        step = replace(one_page_each(range(len(rows))), likeliest=wanted)
        logits = native.run(step)
        np.testing.assert_array_equal(logits, rows)
        return [one and Found(*(np.array(view) for view in one)) for one in native.likeliest()]


def assert_found(row: NDArray[np.float32], wanted: int, found: Found | None) -> None:
    expected = [int(i) for i in np.argsort(-row, kind="stable")[:wanted] if row[i] > -INF]
    assert found is not None
    assert found.ids[found.ranking].tolist() == expected
    assert found.ids.tolist() == sorted(expected)
    assert found.logits.tobytes() == row[found.ids].astype(np.float64).tobytes()


@pytest.mark.parametrize("width", [1, 5, 63, 64, 65, 1000, 4096, 20_003])
@pytest.mark.parametrize("values", [2, 40, 1 << 30])
def test_they_are_those_of_a_sort_and_the_lower_id_of_equals(width: int, values: int) -> None:
    dice = np.random.default_rng(width + values)
    rows = (dice.integers(0, values, (40, width)) - values // 2).astype(np.float32)
    rows[::3] = dice.standard_normal((14, width))
    rows[1][dice.random(width) < 0.9] = -INF
    rows[1][-1] = 3
    wanted = [1, 2, 40, 64, MOST_LIKELIEST, *dice.integers(1, MOST_LIKELIEST, 35).tolist()]
    for row, count, found in zip(rows, wanted, find(rows, wanted), strict=True):
        assert_found(row, count, found)


def test_zeros_of_both_signs_are_equals() -> None:
    row = np.zeros((1, 300), np.float32)
    row[0, ::2] = -0.0
    assert_found(row[0], 7, find(row, [7])[0])


@pytest.mark.parametrize("odd", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 70, 299])
def test_nothing_is_found_in_a_row_that_is_not_all_numbers(odd: float, place: int) -> None:
    rows = np.random.default_rng(2).standard_normal((3, 300)).astype(np.float32)
    rows[1, place] = odd
    first, second, third = find(rows, [4, 4, 4])
    assert_found(rows[0], 4, first)
    assert second is None
    assert_found(rows[2], 4, third)


def test_nothing_is_found_where_nothing_is_wanted_or_there() -> None:
    rows = np.full((2, 100), -INF)
    rows[0] = 1
    assert find(rows, [0, 9]) == [None, None]
    assert find(rows, []) == []


def test_wanting_too_many_or_for_other_rows_is_refused() -> None:
    rows = np.ones((2, 100), np.float32)
    with pytest.raises(NativeError, match="257 likeliest tokens, a row gives 0 to 256"):
        find(rows, [1, MOST_LIKELIEST + 1])
    with pytest.raises(ValueError, match="1 numbers of likeliest tokens for 2 outputs"):
        find(rows, [1])
