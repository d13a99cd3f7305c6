"""Prices follow from the figures given."""

from __future__ import annotations

import pytest

from engine.core.cost_model import Calibration, CostModel

ROUND = Calibration(
    step_s=0.01,
    decode_token_s=0.002,
    prefill_token_s=0.001,
    context_token_s=1e-5,
    token_bytes=1000,
    copy_out_bytes_s=1e6,
    copy_in_bytes_s=2e6,
    park_s=1e-6,
)
MODEL = CostModel(ROUND)


def test_a_step_costs_its_floor_and_each_token_by_its_kind_and_place() -> None:
    assert MODEL.step_s([]) == 0.0
    assert MODEL.step_s([(0, 1)]) == pytest.approx(0.01 + 0.002)
    assert MODEL.step_s([(0, 100)]) == pytest.approx(0.01 + 0.1)
    assert MODEL.step_s([(500, 1), (0, 1)]) == pytest.approx(0.01 + 2 * 0.002 + 0.005)


def test_a_copied_park_costs_its_bytes_and_one_in_place_next_to_nothing() -> None:
    assert MODEL.state_bytes(3000) == 3_000_000
    assert MODEL.park_s(3000, is_copied=True) == pytest.approx(3.0, abs=1e-5)
    assert MODEL.restore_s(3000, is_copied=True) == pytest.approx(1.5, abs=1e-5)
    assert MODEL.park_s(3000, is_copied=False) == MODEL.restore_s(9, is_copied=False) == 1e-6


def test_a_recompute_costs_its_steps() -> None:
    assert MODEL.recompute_s(0, 256) == 0.0
    expected = (0.01 + 0.2) + (0.01 + 100 * (0.001 + 200 * 1e-5))
    assert MODEL.recompute_s(300, 200) == pytest.approx(expected)


def test_figures_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="park_s is 0, it must be above 0"):
        Calibration(park_s=0)
    with pytest.raises(ValueError, match="step_s is nan"):
        Calibration(step_s=float("nan"))
