"""What the machine has, and how large a pool is made for it."""

import os
from collections.abc import Callable

import psutil
import pytest
import torch

from engine.api import Device, KvType, LoadOptions
from engine.core.config import PAGE_TOKENS
from engine.errors import InvalidRequest, NotEnoughMemory
from engine.models.spec import ModelSpec, parse_spec
from engine.options import LEAST_POOL_TOKENS
from engine.runtime import device
from engine.runtime.device import choose_device, default_threads, free_bytes, pool_pages
from engine.runtime.kv_arena import KvArena
from fakes.paper_model import paper_gguf


def _spec() -> ModelSpec:
    """Pages of 2 layers x 2 x 32 tokens x 2 heads x 16 values; a window of 512 tokens."""
    return parse_spec(paper_gguf())


PAGE = 2 * 2 * 32 * 2 * 16 * 2


def test_pages_begin_as_zeros() -> None:
    pages = KvArena.allocate(3, PAGE).pages
    assert pages.shape == (3, PAGE)
    assert not pages.any()


def test_a_pool_of_the_size_asked_for_in_whole_pages() -> None:
    assert pool_pages(LoadOptions(pool_tokens=320), _spec(), PAGE, 10 * PAGE) == 10
    assert pool_pages(LoadOptions(pool_tokens=289), _spec(), PAGE, 10 * PAGE) == 10


def test_a_pool_that_does_not_fit_is_refused_with_the_numbers() -> None:
    with pytest.raises(NotEnoughMemory, match=r"pool of 352 tokens needs 0\.00 GB.*smaller pool"):
        pool_pages(LoadOptions(pool_tokens=352), _spec(), PAGE, 10 * PAGE)


def test_who_stores_halves_is_told_that_bytes_would_halve_it() -> None:
    for kv_type, is_told in ((KvType.F16, True), (KvType.Q8_0, False)):
        options = LoadOptions(pool_tokens=352, kv_type=kv_type)
        with pytest.raises(NotEnoughMemory) as raised:
            pool_pages(options, _spec(), PAGE, 10 * PAGE)
        assert ("8 bits (q8_0)" in str(raised.value)) == is_told


def test_left_to_memory_the_pool_is_every_window_or_half_of_what_is_free() -> None:
    options = LoadOptions(parallel=3)
    assert pool_pages(options, _spec(), PAGE, 1 << 30) == 3 * 512 // 32
    assert pool_pages(options, _spec(), PAGE, 20 * PAGE) == 10
    with pytest.raises(NotEnoughMemory, match="pool of 32 tokens"):
        pool_pages(options, _spec(), PAGE, PAGE)
    with pytest.raises(NotEnoughMemory):
        pool_pages(options, _spec(), PAGE, -PAGE)


def _pretend(monkeypatch: pytest.MonkeyPatch, *, cuda: bool, mps: bool) -> None:
    monkeypatch.setattr(device, "may_have_gpu", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "chosen"),
    [(True, False, "cuda"), (False, True, "mps"), (True, True, "cuda"), (False, False, "cpu")],
)
def test_auto_takes_the_best_that_is_there(
    cuda: bool, mps: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pretend(monkeypatch, cuda=cuda, mps=mps)
    assert choose_device(Device.AUTO) is Device(chosen)
    assert choose_device(Device.CPU) is Device.CPU


def test_without_a_driver_auto_is_the_cpu_and_torch_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _pretend(monkeypatch, cuda=True, mps=True)
    monkeypatch.setattr(device, "may_have_gpu", lambda: False)
    assert choose_device(Device.AUTO) is Device.CPU
    assert choose_device(Device.CUDA) is Device.CUDA


@pytest.mark.parametrize(
    ("system", "machine", "answer"),
    [
        ("darwin", "arm64", True),
        ("darwin", "x86_64", False),
        ("linux", "x86_64", False),
        ("win32", "AMD64", False),
        ("freebsd14", "amd64", True),
    ],
)
def test_whether_there_may_be_a_gpu_is_told_by_the_drivers_files(
    system: str, machine: str, answer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device.sys, "platform", system)
    monkeypatch.setattr(device.platform, "machine", lambda: machine)
    monkeypatch.setattr(device.Path, "exists", lambda path: False)
    assert device.may_have_gpu() is answer
    monkeypatch.setattr(device.Path, "exists", lambda path: True)
    assert device.may_have_gpu() is (answer or system != "darwin")


def test_a_device_that_is_not_there_is_refused_with_what_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _pretend(monkeypatch, cuda=False, mps=True)
    with pytest.raises(InvalidRequest, match="device is cuda, this machine has mps, cpu") as error:
        choose_device(Device.CUDA)
    assert error.value.param == "device"


@pytest.mark.parametrize(
    ("usable", "physical", "threads"), [(8, 4, 4), (2, 16, 2), (3, None, 3), (1, 0, 1)]
)
def test_one_thread_for_each_physical_core_the_process_may_use(
    usable: int, physical: int | None, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores: Callable[[int], set[int]] = lambda pid: set(range(usable))  # noqa: E731
    monkeypatch.setattr(os, "sched_getaffinity", cores, raising=False)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: physical)
    assert default_threads() == threads


def test_free_memory_is_what_the_system_says() -> None:
    assert 0 < free_bytes(Device.CPU) <= psutil.virtual_memory().total
    assert device.GIB == 2**30


@pytest.mark.parametrize("tokens", [1, 10, 31])
def test_a_pool_smaller_than_a_page_is_refused_with_the_least(tokens: int) -> None:
    message = f"pool_tokens is {tokens}, the least is 32, one page; ask for more, or for 0"
    with pytest.raises(InvalidRequest, match=message):
        LoadOptions(pool_tokens=tokens)
    assert PAGE_TOKENS == LEAST_POOL_TOKENS
