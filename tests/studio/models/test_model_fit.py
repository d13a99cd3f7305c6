"""What a model takes is told beforehand as the engine reckons it when it loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import Device, EngineState, KvType, LoadModel, LoadOptions
from engine.factory import create_engine, inspect_model
from fakes.fake_engine import TINY_MODEL
from fakes.listening import Ear
from fakes.tiny_files import write_tiny_gguf
from studio.models.capacity import OneMore
from studio.models.model_fit import Machine, Verdict, largest_model, plan_fit
from studio.services.machine import look_at_machine

GIB = 1 << 30
MACHINE = Machine(total_bytes=16 * GIB, free_bytes=8 * GIB, cores=4, has_native_kernels=True)
INFO = replace(
    TINY_MODEL,
    parameters=7_000_000_000,
    size_bytes=4 * GIB,
    context_tokens=32768,
    kv_values_per_token=65536,
)


def test_weights_pool_and_verdict() -> None:
    fit = plan_fit(INFO, LoadOptions(pool_tokens=8192), MACHINE)
    assert (fit.weights_bytes, fit.pool_tokens, fit.pool_bytes) == (4 * GIB, 8192, GIB)
    assert (fit.needed_bytes, fit.verdict) == (5 * GIB, Verdict.FITS)
    assert (fit.window_tokens, fit.park_bytes) == (8192, GIB + GIB // 2)
    assert plan_fit(INFO, LoadOptions(pool_tokens=29000), MACHINE).verdict is Verdict.TIGHT
    assert plan_fit(INFO, LoadOptions(pool_tokens=40000), MACHINE).verdict is Verdict.TOO_LARGE


def test_without_a_size_the_pool_takes_half_of_what_is_left() -> None:
    fit = plan_fit(INFO, LoadOptions(), MACHINE)
    assert (fit.pool_bytes, fit.verdict) == (2 * GIB, Verdict.FITS)
    small = replace(INFO, context_tokens=1024)
    assert plan_fit(small, LoadOptions(parallel=2), MACHINE).pool_tokens == 2048


def test_kind_of_keys_and_kernels_count() -> None:
    options = LoadOptions(pool_tokens=8192, kv_type=KvType.F32)
    assert plan_fit(INFO, options, MACHINE).pool_bytes == 2 * GIB
    plain = replace(MACHINE, has_native_kernels=False)
    fit = plan_fit(INFO, LoadOptions(pool_tokens=8192), plain)
    assert fit.weights_bytes == 28_000_000_000
    assert fit.verdict is Verdict.TOO_LARGE


def test_the_budget_for_parked_chats_is_lowered_as_the_engine_does() -> None:
    assert plan_fit(INFO, LoadOptions(preempt_ram_mib=0), MACHINE).park_bytes == 0
    assert plan_fit(INFO, LoadOptions(preempt_ram_mib=-1), MACHINE).park_bytes == -1
    assert plan_fit(INFO, LoadOptions(preempt_ram_mib=100), MACHINE).park_bytes == 100 << 20


@pytest.mark.parametrize(
    ("info", "options"),
    [
        (replace(INFO, kv_values_per_token=0), LoadOptions()),
        (INFO, LoadOptions(device=Device.CUDA)),
    ],
)
def test_what_is_not_known_is_not_promised(info: object, options: LoadOptions) -> None:
    assert plan_fit(info, options, MACHINE).verdict is Verdict.UNKNOWN  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "fit", "one_more"),
    [
        (LoadOptions(pool_tokens=8192, parallel=8), 4, OneMore.PARKS),
        (LoadOptions(pool_tokens=8192, parallel=2), 2, OneMore.QUEUES),
        (LoadOptions(pool_tokens=8192, parallel=8, preempt_ram_mib=0), 4, OneMore.ENDS),
    ],
)
def test_capacity_is_told_in_chats(options: LoadOptions, fit: int, one_more: OneMore) -> None:
    found = plan_fit(INFO, options, MACHINE).capacity(2000)
    assert (found.fit, found.one_more) == (fit, one_more)


def test_a_larger_machine_takes_a_larger_model() -> None:
    assert 10 < largest_model(MACHINE) < 20
    assert largest_model(replace(MACHINE, has_native_kernels=False)) < 3


def test_the_engine_makes_of_it_what_was_told(tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    options = LoadOptions(pool_tokens=640)
    engine = create_engine()
    try:
        fit = plan_fit(inspect_model(path, "tiny"), options, look_at_machine(engine.snapshot()))
        ear = Ear(engine)
        engine.control(LoadModel(path=path, name="tiny", options=options))
        ear.wait_ready()
        ear.close()
        snapshot = engine.snapshot()
        assert snapshot.state is EngineState.READY
        assert fit.pool_bytes == snapshot.pool.total_pages * snapshot.pool.page_bytes
        assert fit.pool_tokens == snapshot.pool.total_pages * snapshot.pool.page_tokens
        assert fit.window_tokens == snapshot.window_tokens
    finally:
        engine.shutdown()
