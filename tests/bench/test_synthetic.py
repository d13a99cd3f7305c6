"""The model of random weights is one: it loads, computes, and reads what its shape says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from engine.api import LoadOptions
from engine.bench.reads import weight_bytes_a_step
from engine.bench.step_rig import open_rig
from engine.bench.steps import StepPlan, survey_options, survey_steps
from kernels.quant import dequantize

PLAN = StepPlan(batches=(1,), context_tokens=64, steps=2, prompts=1)


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "make_synthetic", Path(__file__).with_name("make_synthetic.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("storage", ["Q4_0", "Q4_1"])
def test_a_small_one_can_be_measured(maker: ModuleType, storage: str, tmp_path: Path) -> None:
    shape = maker.Shape(
        layers=2, width=64, hidden=128, heads=2, kv_heads=1, vocabulary=320, context_tokens=512
    )
    path = maker.write_model(tmp_path, shape, storage)
    matrices = sum(rows * width for rows, width in shape.matrices().values())
    block_bytes = {"Q4_0": 18, "Q4_1": 20}[storage]
    norms = (2 * shape.layers + 1) * 4 * shape.width
    head = 320 * 64 // 32 * 34
    assert weight_bytes_a_step(path) == 2 * matrices // 32 * block_bytes + head + norms
    options = LoadOptions(cpu_variant="torch", threads=1)
    with open_rig(path, survey_options(options, PLAN)) as rig:
        survey = survey_steps(rig, PLAN)
    assert len(survey.decodes[1]) == 2


@pytest.mark.parametrize("storage", ["Q4_0", "Q4_1", "Q8_0"])
def test_a_row_of_unit_size_keeps_about_that(maker: ModuleType, storage: str) -> None:
    blocks = maker.random_matrix(storage, (64, 1024), seed=1)
    values = dequantize(blocks.reshape(-1), storage, (64, 1024))
    assert np.isfinite(values).all()
    assert abs(values.mean()) < 0.15 * values.std()
    assert 0.8 < values.std() * np.sqrt(1024) < 1.3
