"""Where steps take every core, the engine waits a little for those who pass its events on, and never for long."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.api import EngineEvent, LoadModel, LoadOptions, Origin, Request, Text
from engine.factory import create_engine
from engine.runtime import engine as engine_module
from engine.runtime import model_runner
from engine.runtime.engine import Engine
from fakes.listening import TIMEOUT_S, Ear, run_all
from fakes.tiny_files import write_tiny_gguf

Loaded = Callable[[int], Engine]


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    """An engine on two threads, on a machine of as many cores as asked for."""

    def load(cores: int) -> Engine:
        monkeypatch.setattr(model_runner, "usable_cores", lambda: cores)
        engine = create_engine()
        ear = Ear(engine)
        path = write_tiny_gguf(tmp_path)
        engine.control(LoadModel(path=path, name="tiny", options=LoadOptions(threads=2)))
        ear.wait_ready()
        ear.close()
        engines.append(engine)
        return engine

    engines: list[Engine] = []
    yield load
    for engine in engines:
        engine.shutdown()


def _ask() -> Request:
    prompt = Text(text="the quick brown fox")
    return Request(request_id="a", origin=Origin.API, prompt=prompt, max_tokens=12, ignore_eos=True)


@pytest.mark.parametrize(("cores", "is_awaited"), [(2, True), (3, False)])
def test_the_next_step_begins_when_the_events_were_passed_on(
    cores: int, is_awaited: bool, loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_SHARE_GIVEN", math.inf)
    monkeypatch.setattr(engine_module, "_MOST_GIVEN_S", TIMEOUT_S)
    engine = loaded(cores)
    to_pass_on: queue.SimpleQueue[threading.Event | None] = queue.SimpleQueue()
    told: list[threading.Event] = []
    was_passed_on: list[bool] = []
    is_free = threading.Event()

    def listen(_events: tuple[EngineEvent, ...]) -> threading.Event:
        was_passed_on.extend(event.is_set() for event in told[-1:])
        told.append(threading.Event())
        to_pass_on.put(told[-1])
        return told[-1]

    def pass_on() -> None:
        assert is_awaited or is_free.wait(TIMEOUT_S)  # a slow one
        while (event := to_pass_on.get()) is not None:
            event.set()

    thread = threading.Thread(target=pass_on)
    thread.start()
    stop = engine.subscribe(listen)
    run_all(engine, [_ask()])
    stop()
    is_free.set()
    to_pass_on.put(None)
    thread.join()
    assert len(was_passed_on) >= 12
    assert all(one is is_awaited for one in was_passed_on)


def test_who_never_passes_them_on_ends_nothing(loaded: Loaded) -> None:
    engine = loaded(2)
    stop = engine.subscribe(lambda _events: threading.Event())
    ear = run_all(engine, [_ask()])
    stop()
    assert len(ear.tokens("a")) == 12
