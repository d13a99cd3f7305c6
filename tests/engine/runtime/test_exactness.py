"""The promise: what a request gets depends on itself alone. Every way of running it, bit for bit."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.api import KvType, LoadOptions
from engine.formats.checkpoint import open_checkpoint
from engine.runtime.model_runner import ModelRunner
from fakes.runner_driver import Reply, generate
from fakes.tiny_files import write_tiny_folder, write_tiny_gguf
from kernels.quant import BLOCK_FORMATS

NEW_TOKENS = 6
PROMPT_TOKENS = 259
"""The prompt ends just beyond a piece of 256, the continuation too."""


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


VARIANTS = ("native", "torch")
OPTIONS = LoadOptions(pool_tokens=1024, batch_tokens=1024, threads=2)


def _load(path: Path, options: LoadOptions) -> ModelRunner:
    with closing(open_checkpoint(path)) as checkpoint:
        return ModelRunner.load(checkpoint, options, lambda share: None)


def _tokens(seed: int, count: int = PROMPT_TOKENS) -> list[int]:
    return np.random.default_rng(seed).integers(3, 270, count).tolist()


def _alone(runner: ModelRunner, **how: int) -> Reply:
    return generate(runner, [_tokens(0)], new_tokens=NEW_TOKENS, **how)[0]


def _beside_others(runner: ModelRunner, chunk: int) -> Reply:
    """Third of four; the others begin and end at other times."""
    prompts = [_tokens(1, 5), _tokens(2, 120), _tokens(0), _tokens(3, 300)]
    return generate(runner, prompts, new_tokens=NEW_TOKENS, chunk=chunk)[2]


def _beside_its_own_prompt(runner: ModelRunner) -> Reply:
    return generate(runner, [_tokens(0)] * 3, new_tokens=NEW_TOKENS, chunk=80)[1]


def _on_other_pages(runner: ModelRunner) -> Reply:
    pages = np.random.default_rng(9).permutation(runner.num_pages).tolist()
    return generate(runner, [_tokens(0)], new_tokens=NEW_TOKENS, chunk=100, pages=pages)[0]


def _on_one_thread(runner: ModelRunner) -> Reply:
    runner.set_threads(1)
    return _beside_others(runner, 50)


WAYS: dict[str, Callable[[ModelRunner], Reply]] = {
    "chunks of 1": partial(_alone, chunk=1),
    "chunks of 7": partial(_alone, chunk=7),
    "chunks of 64": partial(_alone, chunk=64),
    "chunks of 256": partial(_alone, chunk=256),
    "beside three others": partial(_beside_others, chunk=64),
    "beside three others in small chunks": partial(_beside_others, chunk=5),
    "beside the same prompt": _beside_its_own_prompt,
    "on other pages": _on_other_pages,
    "on one thread": _on_one_thread,
}


def _check_all_ways(runner: ModelRunner) -> None:
    assert runner.inexact_ops == ()
    runner.set_threads(2)
    expected = _alone(runner, chunk=300)
    assert len(expected.logits) == NEW_TOKENS
    different = []
    for name, run in WAYS.items():
        runner.set_threads(2)
        if not run(runner).equals(expected):
            different.append(name)
    assert different == []


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kv_type", list(KvType))
@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen2", "qwen3"])
def test_a_tiny_folder_is_exact_in_every_way(
    architecture: str, kv_type: KvType, variant: str, tmp_path: Path
) -> None:
    folder = write_tiny_folder(tmp_path, model_type=architecture)
    if architecture == "mistral":
        config = (folder / "config.json").read_text()
        windowed = config.replace('"sliding_window": null', '"sliding_window": 70')
        assert windowed != config
        (folder / "config.json").write_text(windowed)
    options = replace(OPTIONS, kv_type=kv_type, cpu_variant=variant)
    _check_all_ways(_load(folder, options))


@pytest.mark.parametrize(
    ("storage", "variant"),
    [("Q4_1", "torch"), ("BF16", "torch"), *((storage, "native") for storage in BLOCK_FORMATS)],
)
def test_a_tiny_gguf_file_is_exact_in_every_way(storage: str, variant: str, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path, storage=storage)
    _check_all_ways(_load(path, replace(OPTIONS, cpu_variant=variant)))


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_starter_model_is_exact_in_every_way(variant: str, starter_model: Path) -> None:
    _check_all_ways(_load(starter_model, replace(OPTIONS, cpu_variant=variant)))
