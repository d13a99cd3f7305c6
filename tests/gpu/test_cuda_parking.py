"""The engine on a CUDA device, its pool too small for what it is asked: each reply is as alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.api import EnginePort, Finished, Parked, Restored, TokenDelta, UnloadModel
from engine.factory import create_engine
from engine.runs import ParkNow, ResumeNext, SetParkBudget
from engine.runtime import park_plan
from engine.runtime.cuda_lane import CudaLane
from engine.runtime.engine import Engine
from fakes.gpu import NEEDS_CUDA, ON_CUDA
from fakes.listening import Ear, run_all
from fakes.parking_rig import ask, assert_nothing_is_held, four, inside, load, tokens_alone
from fakes.tiny_files import write_tiny_folder

pytestmark = NEEDS_CUDA

CYCLES = 300
SMALL_BUDGET = 10_000
"""Bytes: more than a page, less than any state of several."""


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def alone(model_path: Path) -> dict[str, list[int]]:
    engine = create_engine()
    try:
        load(engine, model_path, pool_tokens=2048, **ON_CUDA)
        return tokens_alone(engine, four())
    finally:
        engine.shutdown()


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    yield engine
    engine.shutdown()


def assert_as_alone(ear: Ear, alone: dict[str, list[int]]) -> None:
    for request_id, tokens in alone.items():
        end = ear.wait_end(request_id)
        assert isinstance(end, Finished), end
        assert ear.tokens(request_id) == tokens
    assert any(isinstance(event, Parked) for event in ear.events)


def is_async(engine: EnginePort) -> bool:
    options = engine.snapshot().options
    assert options is not None
    return options.preempt_async


WAYS: dict[str, dict[str, object]] = {
    "beside the steps": {},
    "within the step": {"preempt_async": False},
    "every eight tokens": {"test_preempt_every": 8},
    "every eight tokens, within": {"test_preempt_every": 8, "preempt_async": False},
    "planner off": {"test_preempt_planner": False},
    "a save that fails": {"test_preempt_fail_save": 1},
}


@pytest.mark.parametrize("way", WAYS)
def test_four_that_overflow_the_pool_say_what_they_say_alone(
    engine: Engine, model_path: Path, alone: dict[str, list[int]], way: str
) -> None:
    load(engine, model_path, **ON_CUDA, **WAYS[way])
    assert engine.snapshot().inexact_ops == ()
    assert_as_alone(run_all(engine, four()), alone)
    assert is_async(engine) == ("preempt_async" not in WAYS[way])
    assert_nothing_is_held(engine)


def test_a_state_larger_than_the_budget_is_computed_again(
    engine: Engine, model_path: Path, alone: dict[str, list[int]]
) -> None:
    load(engine, model_path, **ON_CUDA)
    engine.control(SetParkBudget(budget_bytes=SMALL_BUDGET))
    ear = run_all(engine, four())
    assert_as_alone(ear, alone)
    assert any(e.recomputed_tokens > 1 for e in ear.events if isinstance(e, Restored))
    assert_nothing_is_held(engine)


def test_a_buffer_that_cannot_be_pinned_makes_its_request_park_within_the_step(
    engine: Engine,
    model_path: Path,
    alone: dict[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pin, tries = CudaLane.pin, iter(range(10_000))

    def fail_once(lane: CudaLane, memory: np.ndarray) -> bool:
        return next(tries) != 2 and pin(lane, memory)  # the first is the probe's

    monkeypatch.setattr(CudaLane, "pin", fail_once)
    load(engine, model_path, test_preempt_every=8, **ON_CUDA)
    assert is_async(engine)
    assert_as_alone(run_all(engine, four()), alone)
    assert next(tries) > 3
    assert not is_async(engine)
    assert_nothing_is_held(engine)


def test_where_nothing_can_be_pinned_parks_land_within_the_step(
    engine: Engine,
    model_path: Path,
    alone: dict[str, list[int]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(park_plan, "can_pin", lambda device: False)
    load(engine, model_path, **ON_CUDA)
    assert not is_async(engine)
    assert any("cannot be pinned" in record.getMessage() for record in caplog.records)
    assert_as_alone(run_all(engine, four()), alone)


def test_replies_longer_than_the_window_go_on_and_are_as_alone(
    engine: Engine, model_path: Path
) -> None:
    load(engine, model_path, context_shift=True, **ON_CUDA)
    requests = four(max_tokens=300)[:3]
    alone = tokens_alone(engine, requests)
    assert_as_alone(run_all(engine, requests), alone)
    assert_nothing_is_held(engine)


@pytest.mark.parametrize("moment", ["out", "parked", "in"])
def test_a_cancel_at_any_moment_leaves_nothing_again_and_again(
    engine: Engine, model_path: Path, moment: str
) -> None:
    load(engine, model_path, pool_tokens=1024, **ON_CUDA)
    for number in range(CYCLES // 3):
        request_id, ear = f"gone{number}", Ear(engine)
        engine.submit(ask(request_id, max_tokens=400))
        _hear(ear, request_id, TokenDelta)
        engine.control(ParkNow(request_id=request_id))
        if moment != "out":
            _hear(ear, request_id, Parked)
        if moment == "in":
            engine.control(ResumeNext(request_id=request_id))
        engine.abort(request_id)
        ear.wait_end(request_id)
        ear.close()
    assert_nothing_is_held(engine)


def _hear(ear: Ear, request_id: str, kind: type) -> None:
    ear.wait_until(
        lambda: any(isinstance(e, kind) for e in ear.of(request_id)), f"{kind} of {request_id}"
    )


def test_an_unloaded_model_gives_the_device_its_memory_back(
    engine: Engine, model_path: Path
) -> None:
    gc.collect()
    before = torch.cuda.memory_allocated()
    load(engine, model_path, pool_tokens=1 << 20, test_preempt_every=8, **ON_CUDA)
    pool_bytes = inside(engine).runner.pool.nbytes
    run_all(engine, four())
    assert torch.cuda.memory_allocated() - before > pool_bytes
    ear = Ear(engine)
    engine.control(UnloadModel())
    ear.wait_until(lambda: engine.snapshot().model is None, "the model's end")
    gc.collect()
    assert torch.cuda.memory_allocated() - before < pool_bytes // 10
