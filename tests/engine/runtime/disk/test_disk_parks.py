"""The real engine on a tiny model: what was parked goes on after its model, or the whole program, went away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.api import (
    DiskTrouble,
    EnginePort,
    Failed,
    Finished,
    FinishReason,
    Origin,
    Parked,
    Request,
    Restored,
    Resumed,
    SamplingParams,
    TokenDelta,
    UnloadModel,
)
from engine.errors import ParkDiskFailed, ResumeRefused, Suspended
from engine.factory import create_engine
from engine.runs import ForgetSaved, ParkCause, ParkNow, ResumeNext, Suspend
from engine.runtime.disk.state_folder import SUFFIX
from engine.runtime.engine import Engine
from fakes.listening import Ear, run_all
from fakes.parking_rig import ask, assert_nothing_is_held, inside, load, settled, tokens_alone
from fakes.tiny_files import write_tiny_gguf

ID = "chat-1-2"
PARKED_AT = 70
REPLY_TOKENS = 150
LONG = 2048
"""Tokens in a pool in which nobody is parked but by hand."""


@pytest.fixture(scope="module")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("model"))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = create_engine()
    assert isinstance(engine, Engine)
    yield engine
    engine.shutdown()


def durable(**fields: object) -> Request:
    return ask(ID, max_tokens=REPLY_TOKENS, is_durable=True, **fields)


def comeback() -> Request:
    """Asks for nothing but what the state on disk says."""
    return ask(ID, max_tokens=1, sampling=SamplingParams(seed=99), is_durable=True, resumes=True)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith(".layby"))


def park(engine: EnginePort, request: Request, *, at_token: int = PARKED_AT) -> Ear:
    """Ask, and park by hand once that many tokens are there."""
    ear = Ear(engine)
    heard = 0

    def listen(events: tuple[object, ...]) -> None:
        nonlocal heard
        for event in events:
            if isinstance(event, TokenDelta) and event.request_id == request.request_id:
                heard += len(event.token_ids)
                if heard == at_token:
                    engine.control(ParkNow(request_id=request.request_id))

    stop = engine.subscribe(listen)
    engine.submit(request)
    ear.wait_for(lambda event: isinstance(event, Parked), "the park")
    stop()
    return ear


def wait_on_disk(engine: Engine, folder: Path) -> None:
    """Until the engine thread has put the file in its place."""
    done = threading.Event()
    while not done.is_set():
        settled(engine)
        if files(folder) == [f"{ID}{SUFFIX}"]:
            done.set()


def resumed(ear: Ear) -> Resumed:
    event = ear.wait_for(lambda event: isinstance(event, Resumed), "the comeback")
    assert isinstance(event, Resumed)
    return event


WAYS: dict[str, dict[str, object]] = {
    "in place": {},
    "copied": {"test_preempt_copy": True},
    "copied within the step": {"test_preempt_copy": True, "preempt_async": False},
}
SAMPLINGS = {
    "greedy": SamplingParams(temperature=0.0),
    "seeded": SamplingParams(temperature=0.8, seed=11, repetition_penalty=1.1),
    "seed drawn": SamplingParams(temperature=0.8),
}


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("way", WAYS)
def test_a_parked_request_goes_on_in_another_engine_with_the_tokens_of_an_undisturbed_run(
    tmp_path: Path, model_path: Path, way: str, sampling: str
) -> None:
    request = durable(sampling=SAMPLINGS[sampling])
    options = {"pool_tokens": LONG, "preempt_disk": tmp_path, **WAYS[way]}
    if sampling == "seed drawn":
        options["seed"] = 5
    first = create_engine()
    assert isinstance(first, Engine)
    load(first, model_path, **options)
    alone = tokens_alone(first, [ask(ID, max_tokens=REPLY_TOKENS, sampling=SAMPLINGS[sampling])])
    before = park(first, request)
    wait_on_disk(first, tmp_path)
    saved = (tmp_path / f"{ID}{SUFFIX}").read_bytes()
    first.shutdown()
    assert (tmp_path / f"{ID}{SUFFIX}").read_bytes() == saved

    options.pop("seed", None)
    second = create_engine()
    assert isinstance(second, Engine)
    load(second, model_path, **options)
    assert second.snapshot().saved_ids == (ID,)
    ear = Ear(second)
    second.submit(comeback())
    end = ear.wait_end(ID)
    event = resumed(ear)
    second.shutdown()

    assert isinstance(end, Finished), end
    assert list(event.token_ids) == before.tokens(ID)
    assert event.text == before.text(ID)
    assert [*event.token_ids, *ear.tokens(ID)] == alone[ID]
    assert end.usage.completion_tokens == REPLY_TOKENS
    kinds = [type(one) for one in ear.of(ID) if not isinstance(one, TokenDelta)]
    assert kinds == [Resumed, Restored, Finished]
    assert end.usage.num_parks == 1
    assert end.usage.num_recomputes == 0, "its pages were used again"
    assert files(tmp_path) == []
