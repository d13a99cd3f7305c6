"""A load that cannot succeed does not take the model that is there away from those who use it."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import EngineState, Finished, LoadModel, LoadOptions, ModelChanged, Parked
from engine.errors import EngineError, InvalidRequest, ModelError, ModelNotFound, NotEnoughMemory
from engine.runtime import model_runner
from engine.runtime.device import Device
from engine.runtime.engine import Engine
from fakes.disk_rig import LONG, command_at
from fakes.listening import Ear, submit_together
from fakes.parking_rig import ask, assert_nothing_is_held, inside, load, settled, tokens_alone

MORE_THAN_ANY = 1 << 31
Make = Callable[[Path, Path], LoadModel]


def larger(model_path: Path, _folder: Path) -> LoadModel:
    return LoadModel(
        path=model_path, name="tiny", options=LoadOptions(pool_tokens=MORE_THAN_ANY, threads=1)
    )


def carried(model_path: Path, folder: Path) -> LoadModel:
    return replace(larger(model_path, folder), carries_on=True)


def broken(_model_path: Path, folder: Path) -> LoadModel:
    path = folder / "bad.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 100)
    return LoadModel(path=path, name="bad")


def missing(_model_path: Path, folder: Path) -> LoadModel:
    return LoadModel(path=folder / "none.gguf", name="none")


def senseless(model_path: Path, _folder: Path) -> LoadModel:
    elsewhere = "avx2" if platform.machine() in ("arm64", "aarch64") else "dotprod"
    return LoadModel(
        path=model_path, name="tiny", options=LoadOptions(cpu_variant=elsewhere, threads=1)
    )


WAYS: dict[Make, type[EngineError]] = {
    larger: NotEnoughMemory,
    carried: NotEnoughMemory,
    broken: ModelError,
    missing: ModelNotFound,
    senseless: InvalidRequest,
}


@pytest.mark.parametrize("way", WAYS)
def test_those_who_run_do_not_notice(
    engine: Engine, model_path: Path, tmp_path: Path, way: Make
) -> None:
    load(engine, model_path, pool_tokens=LONG)
    requests = [ask(f"r{n}") for n in range(3)]
    alone = tokens_alone(engine, requests)
    ear = Ear(engine)
    command_at(engine, 20, way(model_path, tmp_path), of="r1")
    submit_together(engine, requests)
    for request in requests:
        assert isinstance(ear.wait_end(request.request_id), Finished)
        assert ear.tokens(request.request_id) == alone[request.request_id]
    (news,) = [one for one in ear.events if isinstance(one, ModelChanged)]
    assert (news.state, news.model) == (EngineState.READY, inside(engine).info)
    assert isinstance(news.error, WAYS[way])
    assert not [one for one in ear.events if isinstance(one, Parked)]
    assert settled(engine).state is EngineState.READY
    assert_nothing_is_held(engine)


def test_what_fits_in_the_room_of_the_one_that_goes_is_loaded(
    engine: Engine, model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free is what the system says, and what the old one has: here nothing else."""
    load(engine, model_path, pool_tokens=LONG)
    model = inside(engine)
    needed = model_runner._RESERVE_BYTES + model.runner.held_bytes
    free = {"before": needed - model.runner.held_bytes, "after": needed}

    def free_bytes(_device: Device) -> int:
        return free["before" if engine.snapshot().state is EngineState.READY else "after"]

    monkeypatch.setattr(model_runner, "free_bytes", free_bytes)
    load(engine, model_path, pool_tokens=LONG)
    assert inside(engine) is not model
    ear = Ear(engine)
    larger_pool = LoadOptions(pool_tokens=64 * LONG, threads=1)
    engine.control(LoadModel(path=model_path, name="tiny", options=larger_pool))
    news = ear.wait_for(lambda one: isinstance(one, ModelChanged), "the refusal")
    assert isinstance(news, ModelChanged)
    assert isinstance(news.error, NotEnoughMemory)
