"""Calibrations kept in a file: one for each model, device and kind of kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.sim.calibration import Calibration
from studio.models.errors import StudioError
from studio.services.calibration_store import CalibrationKey, CalibrationStore

KEY = CalibrationKey(
    model="/m.gguf", size_bytes=10, device="cpu", cpu_variant="native", kv_type="f16"
)


def test_nothing_is_found_before_something_is_saved(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path / "data" / "calibrations.json")
    assert store.find(KEY) is None
    assert not (tmp_path / "data").exists()


def test_each_key_has_its_own_and_the_newest_holds(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path / "data" / "calibrations.json")
    other = replace(KEY, cpu_variant="torch")
    store.save(KEY, Calibration(step_s=1.0))
    store.save(other, Calibration(step_s=2.0))
    store.save(KEY, Calibration(step_s=3.0))
    assert store.find(KEY) == Calibration(step_s=3.0)
    assert store.find(other) == Calibration(step_s=2.0)
    assert store.find(replace(KEY, size_bytes=11)) is None


@pytest.mark.parametrize(
    "text",
    ["no json", "[]", '{"format": "x"}', '{"format": "layby-calibrations-1", "calibrations": 3}'],
)
def test_a_file_that_is_something_else_is_told_and_kept(tmp_path: Path, text: str) -> None:
    file = tmp_path / "calibrations.json"
    file.write_text(text)
    store = CalibrationStore(file)
    with pytest.raises(StudioError, match=r"cannot be read .*delete the file"):
        store.find(KEY)
    with pytest.raises(StudioError, match="cannot be read"):
        store.save(KEY, Calibration())
    assert file.read_text() == text


def test_figures_that_make_no_sense_are_told(tmp_path: Path) -> None:
    file = tmp_path / "calibrations.json"
    store = CalibrationStore(file)
    store.save(KEY, Calibration(step_s=0.125))
    file.write_text(file.read_text().replace("0.125", "-1"))
    with pytest.raises(StudioError, match="step_s is -1"):
        store.find(KEY)
