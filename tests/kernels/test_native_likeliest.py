"""The likeliest tokens as the native kernels find them: those of a sort of the whole row, whatever stands in it."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fakes.native_rig import ModelWeights, compiled, needs_kernels, one_page_each, rows_program
from kernels.cpu.library import NativeError
from kernels.wishes import MOST_LIKELIEST, Found, Likeliest, Wish

pytestmark = needs_kernels

INF = np.float32(np.inf)


class Told(NamedTuple):
    """A copy of what was found of a row."""

    ids: NDArray[np.int32]
    logits: NDArray[np.float64]
    ranking: NDArray[np.int32]


def find(rows: NDArray[np.float32], wanted: list[int]) -> list[Told | None]:
    """The likeliest that the kernels find."""
    found = ask(rows, [Wish(count) for count in wanted])
    return [one and Told(*(np.array(view) for view in one)) for one in found]  # type: ignore[union-attr]


def ask(rows: NDArray[np.float32], wishes: list[Wish]) -> list[Found]:
    """What the kernels find in rows that stand there as logits."""
    weights = ModelWeights()
    recorder, x = rows_program(weights, rows)
    program = recorder.finish(recorder.take_outputs(x))
    with compiled(program, weights.source()) as native:
        step = replace(one_page_each(range(len(rows))), wishes=wishes)
        logits = native.run(step)
        np.testing.assert_array_equal(logits, rows)
        return native.found()


def assert_found(row: NDArray[np.float32], wanted: int, found: Told | None) -> None:
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
    with pytest.raises(ValueError, match="1 wishes for 2 outputs"):
        find(rows, [1])


def test_a_token_is_drawn_from_the_likeliest_of_its_row_by_its_own_dice() -> None:
    rows = np.random.default_rng(3).standard_normal((2, 300)).astype(np.float32)
    taken = Wish(40, True, 300, temperature=0.0)
    drawn = [taken._replace(temperature=0.8, seed=5, position=position) for position in range(400)]
    alone = [one for wish in drawn for one in ask(rows[:1], [wish])]
    assert len(set(alone)) > 10
    beside = [ask(rows[[1, 0]], [taken, wish]) for wish in drawn[:40]]
    assert [pair[1] for pair in beside] == alone[:40]
    assert {pair[0] for pair in beside} == {int(rows[1].argmax())}


def test_no_token_is_drawn_where_padding_is_likely_or_no_number_stands_there() -> None:
    rows = np.random.default_rng(4).standard_normal((3, 300)).astype(np.float32)
    rows[:2, 290] = 9.0
    rows[2, 5] = np.nan
    wish = Wish(3, True, 300)
    assert ask(rows, [wish, wish._replace(vocabulary=290), wish]) == [290, None, None]


def test_some_rows_tell_their_likeliest_beside_others_that_are_drawn_from() -> None:
    rows = np.random.default_rng(5).standard_normal((3, 300)).astype(np.float32)
    first, second, third = ask(rows, [Wish(2, True, 300), Wish(7), Wish()])
    assert first == rows[0].argmax()
    assert isinstance(second, Likeliest)
    assert_found(rows[1], 7, Told(*(np.array(view) for view in second)))
    assert third is None


def test_only_allowed_tokens_are_found_or_drawn_and_the_others_are_left_out_of_the_row() -> None:
    dice = np.random.default_rng(6)
    rows = dice.standard_normal((4, 300)).astype(np.float32)
    rows[0, 5] = np.nan  # not allowed, so it is in nobody's way
    allowed = dice.random((4, 320)) < 0.2
    allowed[0, 5] = False
    allowed[1] = True
    allowed[3] = False
    words = np.packbits(allowed, bitorder="little").view(np.uint32).reshape(4, 10)
    wishes = [
        Wish(7, vocabulary=290, allowed=words[0].ctypes.data),
        Wish(1, True, 290, allowed=words[1].ctypes.data),
        Wish(40, True, 290, temperature=0.8, seed=3, allowed=words[2].ctypes.data),
        Wish(9, vocabulary=290, allowed=words[3].ctypes.data),
    ]
    expected = np.where(allowed[:, :300] & (np.arange(300) < 290), rows, -INF)
    found, logits = ask_masked(rows, wishes)
    np.testing.assert_array_equal(logits, expected)
    assert isinstance(found[0], Likeliest)
    assert_found(expected[0], 7, Told(*(np.array(view) for view in found[0])))
    assert found[1] == expected[1].argmax()
    masked_before = wishes[2]._replace(allowed=0)
    assert found[2] == ask(expected[2:3], [masked_before])[0]
    assert found[3] is None


def ask_masked(
    rows: NDArray[np.float32], wishes: list[Wish]
) -> tuple[list[Found], NDArray[np.float32]]:
    """What the kernels find, and what is left of the rows."""
    weights = ModelWeights()
    recorder, x = rows_program(weights, rows)
    program = recorder.finish(recorder.take_outputs(x))
    with compiled(program, weights.source(), threads=2) as native:
        logits = native.run(replace(one_page_each(range(len(rows))), wishes=wishes))
        return native.found(), logits.copy()
