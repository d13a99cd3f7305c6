"""Loading a model and running its steps: limits, cancelling, memory, failures. For its arithmetic: test_exactness."""

import gc
import json
import sys
import weakref
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import numpy as np
import psutil
import pytest
from safetensors.numpy import load_file, save_file

from engine.api import Device, KvType, LoadOptions
from engine.core.types import StepRow
from engine.errors import (
    CorruptModel,
    DeviceFailure,
    InvalidRequest,
    ModelUnavailable,
    NotEnoughMemory,
    UnsupportedModel,
)
from engine.formats.checkpoint import open_checkpoint
from engine.runtime import model_runner
from engine.runtime.model_runner import ModelRunner
from engine.runtime.native_compute import NativeCompute
from engine.runtime.step_inputs import make_step_inputs
from engine.runtime.torch_compute import TorchCompute
from engine.runtime.weight_reader import unpair_rotary_rows
from fakes.builders import make_sequence
from fakes.runner_driver import generate
from fakes.tiny_files import write_tiny_folder, write_tiny_gguf
from kernels.cpu.library import NativeUnavailable, load_library

OPTIONS = LoadOptions(pool_tokens=512, threads=1)


class _Cancelled(Exception):
    pass


def _load(path: Path, options: LoadOptions = OPTIONS) -> ModelRunner:
    with closing(open_checkpoint(path)) as checkpoint:
        return ModelRunner.load(checkpoint, options, lambda share: None)


def test_a_loaded_model_knows_its_sizes(tmp_path: Path) -> None:
    runner = _load(write_tiny_gguf(tmp_path), LoadOptions(pool_tokens=100, threads=1))
    assert runner.num_pages == 4
    assert runner.window_tokens == 128  # the pool is smaller than the model's 512
    assert runner.page_bytes == 2 * 2 * 32 * 2 * 16 * 2
    assert runner.inexact_ops == ()
    assert runner.kernels == f"native {load_library().variant}"
    assert runner.spec.architecture == "llama"
    assert _load(write_tiny_gguf(tmp_path)).window_tokens == 512


@pytest.mark.parametrize("variant", ["native", "torch"])
def test_keys_and_values_as_bytes_take_little_over_half_of_the_pool(
    variant: str, tmp_path: Path
) -> None:
    def loaded(kv_type: KvType) -> ModelRunner:
        options = replace(OPTIONS, kv_type=kv_type, cpu_variant=variant)
        return _load(write_tiny_gguf(tmp_path), options)

    half, as_bytes = loaded(KvType.F16), loaded(KvType.Q8_0)
    heads = 2 * 2 * 32 * 2  # layers, keys and values, positions, heads
    assert half.page_bytes == heads * 16 * 2
    assert as_bytes.page_bytes == heads * (16 + 2)
    assert as_bytes.pool.shape[1] == as_bytes.page_bytes
    assert as_bytes.num_pages == half.num_pages
    assert as_bytes.compute_id != half.compute_id


@pytest.mark.parametrize("kv_type", KvType)
@pytest.mark.parametrize("variant", ["native", "torch"])
def test_a_page_that_holds_what_no_model_computes_is_told(
    variant: str, kv_type: KvType, tmp_path: Path
) -> None:
    runner = _load(
        write_tiny_gguf(tmp_path), replace(OPTIONS, kv_type=kv_type, cpu_variant=variant)
    )
    generate(runner, [list(range(3, 40))], new_tokens=1)
    page = runner.view_pages([0])[0]
    assert page.any()
    assert runner.is_finite(page)
    assert not runner.is_finite(np.full_like(page, 0xFF))
    if kv_type is KvType.Q8_0:
        spots = [place for place in range(0, len(page), 2) if not _survives_infinity(runner, place)]
        assert len(spots) == 2 * 2 * 32 * 2, "one scale each, of all layers, positions and heads"


def _survives_infinity(runner: ModelRunner, place: int) -> bool:
    page = runner.view_pages([0])[0].copy()
    page[place : place + 2].view(np.float16)[0] = np.inf
    return runner.is_finite(page)


def test_torch_computes_where_the_native_kernels_are_not_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def not_built(variant: str | None) -> NoReturn:
        raise NativeUnavailable("no compiler was there")

    monkeypatch.setattr(model_runner, "load_library", not_built)
    path = write_tiny_gguf(tmp_path)
    assert _load(path).kernels == "torch cpu"
    assert len(caplog.messages) == 1
    assert "several times slower" in caplog.text
    assert "no compiler was there" in caplog.text
    assert _load(path, replace(OPTIONS, cpu_variant="torch")).kernels == "torch cpu"
    assert len(caplog.messages) == 1  # who asks for torch knows
    with pytest.raises(InvalidRequest, match="cpu_variant is native: no compiler was there"):
        _load(path, replace(OPTIONS, cpu_variant="native"))


def test_a_shape_that_no_native_kernel_takes_is_said_with_the_remedy(tmp_path: Path) -> None:
    folder = write_tiny_folder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    wide = config | {"head_dim": 1024, "num_attention_heads": 1, "num_key_value_heads": 1}
    (folder / "config.json").write_text(json.dumps(wide))
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        if "self_attn" in name:
            shape = (64, 1024) if "o_proj" in name else (1024, 64)
            tensors[name] = np.zeros(shape, tensor.dtype)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(UnsupportedModel, match=r"heads are too wide.*--cpu-variant torch"):
        _load(folder)
    assert _load(folder, replace(OPTIONS, cpu_variant="torch")).kernels == "torch cpu"


def test_rows_that_do_not_sample_have_no_logits(tmp_path: Path) -> None:
    runner = _load(write_tiny_gguf(tmp_path))
    first, second = make_sequence(range(10)), make_sequence(range(4), arrival=1)
    first.page_table, second.page_table = [0], [1]
    logits = runner.execute((StepRow(first, 0, 5), StepRow(second, 0, 4)))
    assert logits.shape == (1, runner.spec.vocab_size)
    assert logits.dtype == np.float32
    assert runner.execute((StepRow(first, 5, 2),)).shape == (0, runner.spec.vocab_size)


def test_rows_become_tokens_with_their_places() -> None:
    first, second = make_sequence([7, 8, 9]), make_sequence([5, 6], arrival=1)
    first.page_table, second.page_table = [3], [4, 1]
    inputs = make_step_inputs((StepRow(first, 1, 2), StepRow(second, 0, 1)))
    assert inputs.token_ids == [8, 9, 5]
    assert inputs.positions == [1, 2, 0]
    assert inputs.sequences == [0, 0, 1]
    assert inputs.page_tables == [[3], [4, 1]]
    assert inputs.outputs == [1]


def test_progress_rises_to_one(tmp_path: Path) -> None:
    shares: list[float] = []
    with closing(open_checkpoint(write_tiny_folder(tmp_path, tied=False))) as checkpoint:
        ModelRunner.load(checkpoint, OPTIONS, shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 10


def test_loading_can_be_cancelled_between_any_two_tensors(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)

    def cancel(share: float) -> None:
        if share > 0.5:
            raise _Cancelled

    with closing(open_checkpoint(path)) as checkpoint, pytest.raises(_Cancelled):
        ModelRunner.load(checkpoint, OPTIONS, cancel)


@pytest.mark.parametrize("variant", ["native", "torch"])
def test_close_frees_the_model_at_once(variant: str, tmp_path: Path) -> None:
    runner = _load(write_tiny_gguf(tmp_path), LoadOptions(pool_tokens=1024, cpu_variant=variant))
    pool = weakref.ref(runner.pool)
    gc.disable()
    try:
        runner.close()
        assert pool() is None
    finally:
        gc.enable()
    runner.close()
    with pytest.raises(ModelUnavailable):
        runner.execute(())


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="resident memory means something else elsewhere"
)
def test_an_unloaded_model_gives_its_memory_back_to_the_system(
    starter_model: Path, tmp_path: Path
) -> None:
    _load(write_tiny_gguf(tmp_path)).close()  # whatever is made once is made now
    before = psutil.Process().memory_info().rss
    runner = _load(starter_model, LoadOptions(pool_tokens=512, cpu_variant="torch"))
    loaded = psutil.Process().memory_info().rss
    runner.close()
    after = psutil.Process().memory_info().rss
    assert loaded - before > 500 << 20
    assert after - before < 100 << 20


@pytest.mark.parametrize("free", [0, 100 << 20, (256 << 20) + 1000])
def test_weights_that_do_not_fit_are_refused_before_they_are_read(
    free: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_runner, "free_bytes", lambda device: free)
    read: list[float] = []
    with (
        closing(open_checkpoint(write_tiny_gguf(tmp_path))) as checkpoint,
        pytest.raises(NotEnoughMemory, match=r"needs 0\.25 GB, .* GB are free; close other"),
    ):
        ModelRunner.load(checkpoint, OPTIONS, read.append)
    assert read == []


@pytest.mark.parametrize(
    "error", [MemoryError("no 5 GiB"), RuntimeError("can't allocate memory: no 5 GiB")]
)
def test_memory_that_runs_out_while_loading_is_an_error_of_the_model(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> None:
        raise error

    monkeypatch.setattr(model_runner.KvArena, "allocate", no_memory)
    with pytest.raises(NotEnoughMemory, match="no 5 GiB"):
        _load(write_tiny_gguf(tmp_path))


@pytest.mark.parametrize(
    ("variant", "compute"), [("native", NativeCompute), ("torch", TorchCompute)]
)
def test_a_failure_of_a_kernel_is_a_failure_of_the_device(
    variant: str,
    compute: type[NativeCompute] | type[TorchCompute],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = _load(write_tiny_gguf(tmp_path), LoadOptions(pool_tokens=1024, cpu_variant=variant))
    before = generate(runner, [range(20)], new_tokens=2)

    def fail(*_: object) -> None:
        raise RuntimeError("device-side assert")

    with monkeypatch.context() as patch:
        patch.setattr(compute, "run", fail)
        with pytest.raises(DeviceFailure, match="device-side assert"):
            generate(runner, [range(20)], new_tokens=2)
    after = generate(runner, [range(20)], new_tokens=2)
    assert after[0].equals(before[0])


def test_what_a_file_is_not_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CorruptModel, match=r"attn_q_norm\.weight is missing"):
        _load(_renamed(write_tiny_gguf(tmp_path), b"llama", b"qwen3"))
    with pytest.raises(UnsupportedModel, match="'lLama' are not supported"):
        _load(_renamed(write_tiny_gguf(tmp_path), b"llama", b"lLama"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InvalidRequest, match="device is cuda"):
        _load(write_tiny_gguf(tmp_path), LoadOptions(device=Device.CUDA))


def _renamed(path: Path, old: bytes, new: bytes) -> Path:
    path.write_bytes(path.read_bytes().replace(old, new))
    return path


def test_rotary_pairs_are_put_back() -> None:
    rows = np.array([0, 2, 1, 3, 4, 6, 5, 7])
    assert unpair_rotary_rows(rows, 4).tolist() == list(range(8))
    matrix = np.stack([rows, rows], axis=1)
    assert unpair_rotary_rows(matrix, 4)[:, 1].tolist() == list(range(8))
