"""Perplexity: what it is, and that of the served kernels is that of float32 on the same weights."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from engine.api import KvType, LoadOptions
from engine.bench.perplexity import measure_perplexity
from engine.runtime.torch_compute import TorchCompute
from fakes.tiny_files import CONTEXT_TOKENS, write_tiny_gguf
from kernels.api import StepInputs
from kernels.quant import BLOCK_FORMATS

OPTIONS = LoadOptions(threads=2, cpu_variant="native")
FLOAT32 = LoadOptions(threads=2, cpu_variant="torch", kv_type=KvType.F32)
BOUND = 0.005
"""Done-when 5 of the issue of these kernels."""


@pytest.fixture(scope="module")
def text() -> str:
    return resources.files("resources").joinpath("perplexity.txt").read_text("utf-8")


@pytest.mark.parametrize("storage", BLOCK_FORMATS)
def test_a_tiny_model_foresees_as_in_float32(storage: str, text: str, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path, storage=storage)
    found = measure_perplexity(path, OPTIONS, text, most_tokens=CONTEXT_TOKENS + 100)
    assert found.num_tokens == CONTEXT_TOKENS + 100 - 2, "two windows"
    assert abs(found.difference) < BOUND
    assert found.served != found.float32


@pytest.mark.slow
def test_the_starter_model_foresees_as_in_float32(starter_model: Path, text: str) -> None:
    found = measure_perplexity(starter_model, OPTIONS, text, most_tokens=320)
    assert abs(found.difference) < BOUND
    assert 5 < found.served < 60, "it knows English, and not this text"


def test_float32_served_is_float32(text: str, tmp_path: Path) -> None:
    found = measure_perplexity(write_tiny_gguf(tmp_path), FLOAT32, text, most_tokens=130)
    assert found.served == found.float32
    assert found.difference == 0


def test_a_model_that_knows_nothing_is_as_surprised_as_its_vocabulary_is_large(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, widths = TorchCompute.run, set()

    def run_blindly(compute: TorchCompute, step: StepInputs) -> np.ndarray:
        logits = run(compute, step)
        widths.add(logits.shape[1])
        return np.zeros_like(logits)

    monkeypatch.setattr(TorchCompute, "run", run_blindly)
    found = measure_perplexity(write_tiny_gguf(tmp_path), FLOAT32, text, most_tokens=66)
    assert found.num_tokens == 65
    assert [found.served] == [pytest.approx(width) for width in widths]


def test_a_text_without_a_second_token_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give at least two"):
        measure_perplexity(write_tiny_gguf(tmp_path), FLOAT32, "", most_tokens=1)
