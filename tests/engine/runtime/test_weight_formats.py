"""Whole files of every weight format: the native kernels on the file's blocks against torch on what the blocks mean."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from engine.api import KvType, LoadOptions
from engine.formats.checkpoint import open_checkpoint
from engine.runtime.model_runner import ModelRunner
from fakes.native_rig import VARIANTS, is_paired
from fakes.runner_driver import Reply, generate
from fakes.tiny_files import write_tiny_gguf
from kernels.quant import BLOCK_FORMATS

PROMPT = np.random.default_rng(4).integers(3, 270, 80).tolist()
NEW_TOKENS = 4


def _reply(path: Path, variant: str) -> Reply:
    options = LoadOptions(pool_tokens=256, threads=1, kv_type=KvType.F32, cpu_variant=variant)
    with closing(open_checkpoint(path)) as checkpoint:
        runner = ModelRunner.load(checkpoint, options, lambda share: None)
    return generate(runner, [PROMPT], new_tokens=NEW_TOKENS)[0]


@pytest.mark.parametrize("storage", BLOCK_FORMATS)
def test_a_whole_file_gives_the_logits_of_its_dequantised_weights(
    storage: str, tmp_path: Path
) -> None:
    path = write_tiny_gguf(tmp_path, storage=storage, seed=2)
    native, torch = _reply(path, "native"), _reply(path, "torch")
    assert native.token_ids == torch.token_ids
    error = np.linalg.norm(native.logits[0] - torch.logits[0]) / np.linalg.norm(torch.logits[0])
    # Where an instruction multiplies pairs of bfloat16, rows are rounded to 8 bits of fraction; where values share
    # bytes in twos, to 12 bits instead of 15.
    most = 0.02 if storage == "BF16" else 4e-3 if is_paired(storage, VARIANTS[0]) else 1e-3
    assert error < most
