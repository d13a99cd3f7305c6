"""A model is left alone while anybody uses it, where that was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.api import (
    EngineState,
    Failed,
    LoadModel,
    LoadOptions,
    ModelChanged,
    Origin,
    Request,
    Text,
    UnloadModel,
)
from engine.errors import ModelUnavailable
from engine.runs import ParkNow
from engine.runtime.engine import Engine
from fakes.listening import Ear
from fakes.tiny_files import write_tiny_gguf


@pytest.mark.parametrize("loads", [True, False])
def test_a_model_in_use_stays_and_an_idle_one_goes(
    engine: Engine, tmp_path: Path, *, loads: bool
) -> None:
    path = write_tiny_gguf(tmp_path)
    command = (
        LoadModel(path=path, name="other", only_if_idle=True)
        if loads
        else UnloadModel(only_if_idle=True)
    )
    ear = Ear(engine)
    engine.control(LoadModel(path=path, name="tiny", options=LoadOptions(pool_tokens=512)))
    ear.wait_ready()
    request = Request(
        request_id="a", origin=Origin.API, prompt=Text(text="once upon"), ignore_eos=True
    )
    engine.submit(request)
    engine.control(ParkNow(request_id="a"))  # held before it begins: it stays as long as we like
    ear.events.clear()
    engine.control(command)
    told = ear.wait_for(lambda event: isinstance(event, ModelChanged))
    assert isinstance(told, ModelChanged)
    assert (told.state, told.model and told.model.name) == (EngineState.READY, "tiny")
    engine.abort("a")
    ear.wait_end("a")
    ear.events.clear()
    engine.control(command)
    told = ear.wait_for(lambda event: isinstance(event, ModelChanged))
    assert isinstance(told, ModelChanged)
    assert told.state is (EngineState.LOADING if loads else EngineState.NO_MODEL)
    if loads:
        ear.wait_ready()
    ear.close()


def test_without_that_wish_it_is_replaced_at_once(engine: Engine, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    ear = Ear(engine)
    engine.control(LoadModel(path=path, name="tiny", options=LoadOptions(pool_tokens=512)))
    ear.wait_ready()
    engine.submit(
        Request(request_id="a", origin=Origin.API, prompt=Text(text="x"), ignore_eos=True)
    )
    engine.control(ParkNow(request_id="a"))
    engine.control(UnloadModel())
    end = ear.wait_end("a")
    assert isinstance(end, Failed)
    assert isinstance(end.error, ModelUnavailable)
    ear.close()
