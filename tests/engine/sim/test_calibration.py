"""Calibrations as data: written and read again, with every field checked."""

from __future__ import annotations

import json

import pytest

from engine.sim.calibration import Calibration, read_calibration, write_calibration


def test_what_is_written_is_read_again() -> None:
    calibration = Calibration(step_s=0.1, token_bytes=17)
    data = json.loads(json.dumps(write_calibration(calibration)))
    assert read_calibration(data) == calibration


@pytest.mark.parametrize("value", [0, -1.0, True, "1", None, float("nan"), float("inf"), [1]])
def test_a_figure_that_makes_no_sense_is_named(value: object) -> None:
    data = {**write_calibration(Calibration()), "decode_token_s": value}
    with pytest.raises(ValueError, match=r"decode_token_s is .*, it must be a number above 0"):
        read_calibration(data)


def test_a_figure_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match="step_s is None"):
        read_calibration({})
