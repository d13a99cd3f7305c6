"""A pool in torch's own memory, as devices beside the CPU have it; tried here on the CPU."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from engine.api import Device, LoadOptions
from engine.formats.checkpoint import open_checkpoint
from engine.runtime import model_runner
from engine.runtime.compute import Backend
from engine.runtime.model_runner import ModelRunner
from engine.runtime.torch_device import DeviceArena
from fakes.runner_driver import Reply, generate
from fakes.tiny_files import write_tiny_gguf


def test_a_device_arena_begins_as_zeros_and_lets_go_of_them() -> None:
    arena = DeviceArena(3, 64, Device.CPU)
    assert arena.pages.shape == (3, 64)
    assert not arena.pages.any()
    arena.commit([0, 1], lambda: 0)
    arena.give_back([0, 1])
    arena.close()
    assert arena.pages.numel() == 0


def test_a_step_computes_the_same_on_torchs_memory_as_on_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiny_gguf(tmp_path)
    options = LoadOptions(cpu_variant="torch", pool_tokens=512)

    def replies() -> list[Reply]:
        with closing(open_checkpoint(path)) as checkpoint:
            runner = ModelRunner.load(checkpoint, options, lambda share: None)
        try:
            return generate(runner, [range(20), range(40, 50)], new_tokens=4)
        finally:
            runner.close()

    on_host = replies()

    def make_arena(num_pages: int, backend: Backend) -> DeviceArena:
        return DeviceArena(num_pages, backend.page_bytes, backend.device)

    monkeypatch.setattr(model_runner, "_make_arena", make_arena)
    for ours, theirs in zip(replies(), on_host, strict=True):
        assert ours.equals(theirs)
