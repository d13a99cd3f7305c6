"""Finds the cost model's figures that explain measured steps best. Pure apart from numpy: no clock, no torch.

Weighted least squares over the steps' kinds, with no figure below zero. A kind counts by its median, so that steps
which others on the machine held up do not count; errors count by their share of the step.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from engine.bench.step_rig import StepTime
from engine.core.cost_model import Calibration
from engine.runs import StepCount

_LEAST_S = 1e-9
"""A calibration has no zeros: a figure that the steps do not show is this."""
_BUCKET_TOKENS = 64
"""Steps whose contexts differ by less are of one kind."""


@dataclass(frozen=True, slots=True)
class StepFit:
    """The calibration's figures of steps, and how well they explain what was measured."""

    step_s: float
    decode_token_s: float
    prefill_token_s: float
    context_token_s: float
    worst_error: float
    """Of all kinds of steps, the largest error as a share of the step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkCosts:
    """What parking was measured to take."""

    token_bytes: int
    copy_out_bytes_s: float
    copy_in_bytes_s: float
    park_s: float
    """A park or a restore that copies nothing."""


def fit_steps(steps: Iterable[StepTime]) -> StepFit:
    """Raises ValueError when there are not both steps of a prompt and steps of decoding."""
    kinds: dict[tuple[int, int, int], list[tuple[tuple[float, ...], float]]] = defaultdict(list)
    for step in steps:
        features = _features(step)
        context = sum(start for start, _ in step.rows) // len(step.rows)
        kinds[(len(step.rows), step.num_tokens, context // _BUCKET_TOKENS)].append(
            (features, step.step_s)
        )
    rows = np.array(
        [np.median([features for features, _ in kind], axis=0) for kind in kinds.values()]
    ).reshape(-1, 4)
    seconds = np.array([statistics.median(s for _, s in kind) for kind in kinds.values()])
    _require_both(rows)
    found = _least_squares(rows / seconds[:, None], np.ones(len(rows)))
    return _step_fit(found, rows, seconds)


def fit_counts(counts: Iterable[StepCount]) -> StepFit:
    """The same from steps added up by kind, which count by their share of the time; all together take what they took.

    Raises ValueError when there are not both steps of a prompt and steps of decoding.
    """
    kinds = [one for one in counts if one.seconds > 0]
    rows = np.array(
        [(s.steps, s.steps * s.replies, s.prompt_tokens, s.context_tokens) for s in kinds], float
    ).reshape(-1, 4)
    seconds = np.array([one.seconds for one in kinds])
    _require_both(rows)
    weights = np.sqrt(seconds / seconds.sum())
    found = _least_squares(rows * (weights / seconds)[:, None], weights)
    found *= seconds.sum() / (rows @ found).sum()
    return _step_fit(found, rows, seconds)


def make_calibration(fit: StepFit, parks: ParkCosts) -> Calibration:
    """Both as the simulator takes them."""
    return Calibration(
        step_s=fit.step_s,
        decode_token_s=fit.decode_token_s,
        prefill_token_s=fit.prefill_token_s,
        context_token_s=fit.context_token_s,
        token_bytes=parks.token_bytes,
        copy_out_bytes_s=parks.copy_out_bytes_s,
        copy_in_bytes_s=parks.copy_in_bytes_s,
        park_s=max(parks.park_s, _LEAST_S),
    )


def _require_both(rows: np.ndarray) -> None:
    if not rows[:, 1].any() or not rows[:, 2].any():
        raise ValueError("a calibration needs steps of prompts and steps of decoding")


def _step_fit(found: np.ndarray, rows: np.ndarray, seconds: np.ndarray) -> StepFit:
    errors = np.abs(rows @ found / seconds - 1)
    step_s, decode_s, prefill_s, context_s = (max(float(one), _LEAST_S) for one in found)
    return StepFit(step_s, decode_s, prefill_s, context_s, float(errors.max()))


def _features(step: StepTime) -> tuple[float, ...]:
    """What `CostModel.step_s` multiplies its four figures by."""
    decodes = sum(count == 1 for _, count in step.rows)
    prompt_tokens = sum(count for _, count in step.rows if count > 1)
    return (1.0, decodes, prompt_tokens, sum(start * count for start, count in step.rows))


def _least_squares(matrix: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The best factors that are not below zero: who would be is left out, the worst first, and all else found anew."""
    free = list(range(matrix.shape[1]))
    while True:
        found = np.zeros(matrix.shape[1])
        found[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
        if found.min() >= 0:
            return found
        free.remove(int(found.argmin()))
