"""The promise: what a request gets depends on itself alone. Every way of running it, bit for bit."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.api import KvType, LoadOptions
from engine.formats.checkpoint import open_checkpoint
from engine.runtime.model_runner import ModelRunner
from fakes import native_rig
from fakes.exact_ways import SHORT, SLOW, WHOLE, Size, check_all_ways
from fakes.tiny_files import write_tiny_folder, write_tiny_gguf
from kernels.quant import BLOCK_FORMATS


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


VARIANTS = ("native", "torch")
EVERY_VARIANT = (*native_rig.VARIANTS, "torch")
ARCHITECTURES = ("llama", "mistral", "qwen2", "qwen3")
OPTIONS = LoadOptions(pool_tokens=1024, batch_tokens=1024, threads=2)


def _load(path: Path, options: LoadOptions) -> ModelRunner:
    with closing(open_checkpoint(path)) as checkpoint:
        return ModelRunner.load(checkpoint, options, lambda share: None)


def _write_folder(folder: Path, architecture: str) -> Path:
    written = write_tiny_folder(folder, model_type=architecture)
    if architecture == "mistral":
        config = (written / "config.json").read_text()
        windowed = config.replace('"sliding_window": null', '"sliding_window": 70')
        assert windowed != config
        (written / "config.json").write_text(windowed)
    return written


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kv_type", list(KvType))
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_tiny_folder_is_exact_in_every_way(
    architecture: str, kv_type: KvType, variant: str, tmp_path: Path
) -> None:
    folder = _write_folder(tmp_path, architecture)
    check_all_ways(_load(folder, replace(OPTIONS, kv_type=kv_type, cpu_variant=variant)))


@pytest.mark.parametrize(
    ("storage", "variant"),
    [("Q4_1", "torch"), ("BF16", "torch"), *((storage, "native") for storage in BLOCK_FORMATS)],
)
def test_a_tiny_gguf_file_is_exact_in_every_way(storage: str, variant: str, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path, storage=storage)
    check_all_ways(_load(path, replace(OPTIONS, cpu_variant=variant)))


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("variant", EVERY_VARIANT)
@pytest.mark.parametrize("kv_type", list(KvType))
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_is_exact_in_every_way_on_every_variant(
    architecture: str, kv_type: KvType, variant: str, tmp_path: Path
) -> None:
    folder = _write_folder(tmp_path, architecture)
    options = replace(OPTIONS, kv_type=kv_type, cpu_variant=variant)
    check_all_ways(_load(folder, options), WHOLE)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("variant", EVERY_VARIANT)
@pytest.mark.parametrize("storage", BLOCK_FORMATS)
def test_every_weight_format_is_exact_in_every_way_on_every_variant(
    storage: str, variant: str, tmp_path: Path
) -> None:
    path = write_tiny_gguf(tmp_path, storage=storage)
    check_all_ways(_load(path, replace(OPTIONS, cpu_variant=variant)), WHOLE)


@pytest.mark.slow
@pytest.mark.parametrize("kv_type", [KvType.F16, KvType.Q8_0])
@pytest.mark.parametrize(
    ("variant", "size"),
    [("native", SHORT), ("torch", SLOW), pytest.param("torch", SHORT, marks=pytest.mark.full)],
    ids=["native", "torch", "torch-token by token"],
)
def test_the_starter_model_is_exact_in_every_way(
    variant: str, size: Size, kv_type: KvType, starter_model: Path
) -> None:
    options = replace(OPTIONS, cpu_variant=variant, kv_type=kv_type)
    check_all_ways(_load(starter_model, options), size)
