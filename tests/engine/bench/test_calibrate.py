"""The fit of the cost model, on steps that are made up."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from engine.bench.calibrate import ParkCosts, fit_counts, fit_steps, make_calibration
from engine.bench.step_rig import StepTime
from engine.core.cost_model import Calibration, CostModel
from engine.runs import StepCount

TRUTH = Calibration(
    step_s=0.002, decode_token_s=0.0015, prefill_token_s=0.0006, context_token_s=1e-6
)


def steps_of(truth: Calibration, *, noise: float = 0.0, seed: int = 0) -> Iterator[StepTime]:
    dice = random.Random(seed)
    model = CostModel(truth)
    for rows in (1, 2, 4, 8):
        for context in (64, 512, 1500):
            for _ in range(20):
                yield timed(model, tuple((context, 1) for _ in range(rows)), dice, noise)
    for start, count in ((0, 256), (256, 256), (512, 100), (1024, 256)):
        for _ in range(5):
            yield timed(model, ((start, count),), dice, noise)
    yield timed(model, ((0, 128), (512, 1)), dice, noise)


def timed(
    model: CostModel, rows: tuple[tuple[int, int], ...], dice: random.Random, noise: float
) -> StepTime:
    seconds = model.step_s(rows) * (1 + noise * dice.uniform(-1, 1))
    return StepTime(rows, seconds, seconds * 0.9, 0.0)


def test_the_figures_behind_exact_steps_are_found() -> None:
    fit = fit_steps(steps_of(TRUTH))
    assert fit.step_s == pytest.approx(TRUTH.step_s, rel=1e-6)
    assert fit.decode_token_s == pytest.approx(TRUTH.decode_token_s, rel=1e-6)
    assert fit.prefill_token_s == pytest.approx(TRUTH.prefill_token_s, rel=1e-6)
    assert fit.context_token_s == pytest.approx(TRUTH.context_token_s, rel=1e-6)
    assert fit.worst_error < 1e-6


def test_noise_and_some_steps_that_were_held_up_change_little() -> None:
    steps = list(steps_of(TRUTH, noise=0.05))
    for index in range(0, len(steps), 7):
        one = steps[index]
        steps[index] = StepTime(one.rows, one.step_s * 20, one.run_s, one.plan_s)
    fit = fit_steps(steps)
    assert fit.decode_token_s == pytest.approx(TRUTH.decode_token_s, rel=0.2)
    assert fit.prefill_token_s == pytest.approx(TRUTH.prefill_token_s, rel=0.2)


def test_no_figure_is_below_zero() -> None:
    """Steps that get faster with more context have no cost of context, and a calibration has no zeros."""
    rows_and_seconds = [(((start, 1),), 0.01 - start * 1e-6) for start in (0, 500, 1000)]
    rows_and_seconds += [(((0, 256),), 0.1), (((0, 1), (0, 1)), 0.012)]
    fit = fit_steps(StepTime(rows, s, s, 0.0) for rows, s in rows_and_seconds)
    assert fit.context_token_s == 1e-9
    assert fit.step_s > 0
    assert fit.decode_token_s > 0
    assert fit.worst_error < 0.2


@pytest.mark.parametrize("rows", [((0, 256),), ((10, 1),)])
def test_one_kind_of_steps_alone_is_an_error(rows: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match="prompts and steps of decoding"):
        fit_steps([StepTime(rows, 0.1, 0.1, 0.0)])


def test_steps_and_parks_make_a_calibration() -> None:
    costs = ParkCosts(token_bytes=100, copy_out_bytes_s=2e9, copy_in_bytes_s=3e9, park_s=0.0)
    made = make_calibration(fit_steps(steps_of(TRUTH)), costs)
    assert (made.token_bytes, made.copy_out_bytes_s, made.copy_in_bytes_s) == (100, 2e9, 3e9)
    assert 0 < made.park_s < 1e-6
    assert made.step_s == pytest.approx(TRUTH.step_s)


def counts_of(truth: Calibration, *, held_up: float = 1.0) -> tuple[StepCount, ...]:
    """Steps added up by kind; those of three replies took `held_up` times as long as the model says."""
    model = CostModel(truth)
    counts = []
    for replies, prompt, steps, context in (
        (0, 256, 6, 128),
        (1, 0, 300, 900),
        (2, 0, 400, 700),
        (2, 64, 9, 400),
        (3, 0, 500, 500),
        (4, 0, 200, 350),
    ):
        rows = [(context, 1)] * replies + ([(context, prompt)] if prompt else [])
        counts.append(
            StepCount(
                replies=replies,
                has_prompts=prompt > 0,
                steps=steps,
                seconds=steps * model.step_s(rows) * (held_up if replies == 3 else 1.0),
                prompt_tokens=steps * prompt,
                context_tokens=steps * sum(start * count for start, count in rows),
            )
        )
    return tuple(counts)


def test_the_figures_behind_steps_that_were_added_up_are_found() -> None:
    fit = fit_counts(counts_of(TRUTH))
    assert fit.step_s == pytest.approx(TRUTH.step_s, rel=1e-6)
    assert fit.decode_token_s == pytest.approx(TRUTH.decode_token_s, rel=1e-6)
    assert fit.prefill_token_s == pytest.approx(TRUTH.prefill_token_s, rel=1e-6)
    assert fit.context_token_s == pytest.approx(TRUTH.context_token_s, rel=1e-6)


def test_figures_of_added_up_steps_explain_the_time_as_a_whole() -> None:
    counts = counts_of(TRUTH, held_up=1.5)
    fit = fit_counts(counts)
    told = sum(
        one.steps * (fit.step_s + one.replies * fit.decode_token_s)
        + one.prompt_tokens * fit.prefill_token_s
        + one.context_tokens * fit.context_token_s
        for one in counts
    )
    assert told == pytest.approx(sum(one.seconds for one in counts))


def test_steps_of_decoding_alone_are_too_few_kinds() -> None:
    with pytest.raises(ValueError, match="needs steps of prompts and steps of decoding"):
        fit_counts(one for one in counts_of(TRUTH) if not one.has_prompts)
