"""What a request gets depends on itself alone on a CUDA device as well. Bit for bit, in every way of running it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
import torch

from engine.api import Device, KvType, LoadOptions
from engine.formats.checkpoint import open_checkpoint
from engine.runtime.model_runner import ModelRunner
from fakes.exact_ways import check_all_ways
from fakes.gpu import NEEDS_CUDA
from fakes.runner_driver import generate
from fakes.tiny_files import write_tiny_folder
from fakes.tiny_model import LARGE_LAYER, SMALL_SHAPE, TinyShape

pytestmark = NEEDS_CUDA


def _load(folder: Path, kv_type: KvType = KvType.F16) -> ModelRunner:
    options = LoadOptions(pool_tokens=1024, batch_tokens=1024, device=Device.CUDA, kv_type=kv_type)
    with closing(open_checkpoint(folder)) as checkpoint:
        return ModelRunner.load(checkpoint, options, lambda share: None)


@pytest.mark.parametrize(
    ("architecture", "kv_type"),
    [
        ("llama", KvType.F16),
        ("llama", KvType.F32),
        ("llama", KvType.Q8_0),
        ("mistral", KvType.F16),
        ("qwen2", KvType.F16),
        ("qwen3", KvType.F16),
    ],
)
def test_a_tiny_model_is_exact_in_every_way(
    architecture: str, kv_type: KvType, tmp_path: Path
) -> None:
    folder = write_tiny_folder(tmp_path, model_type=architecture)
    if architecture == "mistral":
        config = (folder / "config.json").read_text()
        windowed = config.replace('"sliding_window": null', '"sliding_window": 70')
        assert windowed != config
        (folder / "config.json").write_text(windowed)
    runner = _load(folder, kv_type)
    check_all_ways(runner)
    runner.close()


@pytest.mark.parametrize("shape", [SMALL_SHAPE, LARGE_LAYER], ids=["135M", "a layer of 8B"])
def test_a_model_of_real_sizes_is_exact_in_every_way(shape: TinyShape, tmp_path: Path) -> None:
    runner = _load(write_tiny_folder(tmp_path, shape=shape, dtype="F16"))
    check_all_ways(runner)
    runner.close()


def test_logits_are_those_of_the_cpu(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path)
    prompt = list(range(3, 250))
    on_cuda = generate(_load(folder), [prompt], new_tokens=1)[0].logits[0]
    with closing(open_checkpoint(folder)) as checkpoint:
        options = LoadOptions(pool_tokens=1024, device=Device.CPU, cpu_variant="torch")
        runner = ModelRunner.load(checkpoint, options, lambda share: None)
    on_cpu = generate(runner, [prompt], new_tokens=1)[0].logits[0]
    torch.testing.assert_close(
        torch.from_numpy(on_cuda), torch.from_numpy(on_cpu), rtol=1e-3, atol=1e-3
    )
