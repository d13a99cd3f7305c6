"""For tests of the real engine under pressure: loads, asks what overflows the pool, looks inside."""

from __future__ import annotations

from pathlib import Path

from engine.api import (
    EngineEvent,
    EnginePort,
    EngineSnapshot,
    LoadModel,
    LoadOptions,
    Origin,
    Parked,
    PromptProgress,
    Request,
    SamplingParams,
    Text,
    Unsubscribe,
)
from engine.runs import ParkNow, ResumeNext
from engine.runtime.engine import Engine
from engine.runtime.loaded_model import LoadedModel
from fakes.listening import Ear, run_all

POOL_TOKENS = 256
REPLY_TOKENS = 100


def load(engine: EnginePort, path: Path, **options: object) -> None:
    """Load the model with a pool of `POOL_TOKENS` unless told otherwise, and wait for it."""
    options = {"pool_tokens": POOL_TOKENS, "threads": 1, **options}
    ear = Ear(engine)
    engine.control(LoadModel(path=path, name="tiny", options=LoadOptions(**options)))  # type: ignore[arg-type]
    ear.wait_ready()
    ear.close()


def ask(request_id: str, **fields: object) -> Request:
    """A request for a sampled reply of `REPLY_TOKENS`; its id is part of the prompt."""
    fields = {
        "prompt": Text(text=f"chat {request_id} says"),
        "sampling": SamplingParams(temperature=0.8, seed=11),
        "max_tokens": REPLY_TOKENS,
        "ignore_eos": True,
        **fields,
    }
    return Request(request_id=request_id, origin=Origin.API, **fields)  # type: ignore[arg-type]


def four(**fields: object) -> list[Request]:
    """Together they need nearly twice the pool."""
    return [ask(f"r{n}", **fields) for n in range(4)]


def tokens_alone(engine: EnginePort, requests: list[Request]) -> dict[str, list[int]]:
    """Each request's tokens when it has the engine to itself."""
    return {one.request_id: run_all(engine, [one]).tokens(one.request_id) for one in requests}


def parks_of(ear: Ear, request_id: str) -> list[Parked]:
    return [event for event in ear.of(request_id) if isinstance(event, Parked)]


def park_while_read(engine: EnginePort, request_id: str) -> Unsubscribe:
    """Park it by hand at the first progress of its prompt, and call it back once it is parked."""
    done: set[type] = set()

    def steer(events: tuple[EngineEvent, ...]) -> None:
        for event in events:
            if isinstance(event, PromptProgress | Parked) and type(event) not in done:
                done.add(type(event))
                is_out = isinstance(event, Parked)
                command = ResumeNext if is_out else ParkNow
                engine.control(command(request_id=request_id))

    return engine.subscribe(steer)


def settled(engine: EnginePort) -> EngineSnapshot:
    """The engine's snapshot once all that came before has been dealt with."""
    run_all(engine, [ask("settles", max_tokens=1)])
    return engine.snapshot()


def inside(engine: Engine) -> LoadedModel:
    """The loaded model; to be looked at on the engine thread, in a listener, or when all is quiet."""
    assert engine._model is not None
    return engine._model


def assert_nothing_is_held(engine: Engine) -> None:
    """No page, no host byte, no request; copies for requests that have ended may still be under way before."""
    for _ in range(1000):
        snapshot = settled(engine)
        if not inside(engine).copier.num_bytes:
            break
    assert snapshot.pool.free_pages + snapshot.pool.reusable_pages == snapshot.pool.total_pages
    assert (snapshot.waiting, snapshot.running, snapshot.parked) == (0, 0, 0)
    assert snapshot.parks.used_bytes == 0
    assert snapshot.runs == ()
    inside(engine).scheduler.check()
    assert inside(engine).copier.num_bytes == 0
