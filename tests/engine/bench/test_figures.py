"""The arithmetic of figures: percentiles, ratios, medians, goals."""

from __future__ import annotations

import random

import numpy as np
import pytest

from engine.bench.figures import Figure, Goal, percentile, ratios


def test_percentiles_are_those_of_numpy() -> None:
    dice = random.Random(0)
    for count in (1, 2, 3, 10, 101):
        values = [dice.random() for _ in range(count)]
        for share in (0.0, 0.01, 0.5, 0.99, 1.0):
            assert percentile(values, share) == pytest.approx(np.percentile(values, share * 100))


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], -0.1), ([1.0], 1.1)])
def test_a_percentile_that_cannot_be_told_is_an_error(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="can be told"):
        percentile(values, share)


def test_ratios_go_pair_by_pair() -> None:
    assert ratios([2.0, 9.0], [1.0, 3.0]) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [([1.0], [], "no pairs"), ([], [], "no pairs"), ([1.0, 1.0], [1.0, 0.0], "is 0")],
)
def test_ratios_without_pairs_or_by_zero_are_an_error(
    ours: list[float], theirs: list[float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        ratios(ours, theirs)


def test_a_figure_is_its_median_with_its_range() -> None:
    figure = Figure("speed", "tokens/s", (3.0, 1.0, 10.0, 2.0))
    assert (figure.median, figure.low, figure.high) == (2.5, 1.0, 10.0)
    assert figure.is_met is None


@pytest.mark.parametrize(
    ("goal", "is_met"),
    [
        (Goal(bound=2.0), True),
        (Goal(bound=2.1), False),
        (Goal(bound=2.0, is_least=False), True),
        (Goal(bound=1.9, is_least=False), False),
    ],
)
def test_a_goal_is_met_by_the_median(goal: Goal, is_met: bool) -> None:
    assert Figure("ratio", "", (1.0, 2.0, 3.0), goal).is_met is is_met


def test_a_figure_without_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="never measured"):
        Figure("speed", "tokens/s", ())
