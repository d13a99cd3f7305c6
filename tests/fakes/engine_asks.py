"""Greedy requests to the real engine on a tiny model."""

from __future__ import annotations

from pathlib import Path

from engine.api import (
    LoadModel,
    LoadOptions,
    Origin,
    Request,
    SamplingParams,
    Text,
)
from engine.runtime.engine import Engine
from fakes.listening import Ear

GREEDY = SamplingParams(temperature=0.0)


def load(engine: Engine, path: Path, **options: int) -> None:
    """Load it and wait until it is ready."""
    ear = Ear(engine)
    engine.control(LoadModel(path=path, name="tiny", options=LoadOptions(**options)))
    ear.wait_ready()
    ear.close()


def ask(request_id: str, text: str = "the quick brown fox", **fields: object) -> Request:
    """A short greedy one, unless told otherwise."""
    fields = {
        "sampling": GREEDY,
        "max_tokens": 12,
        "ignore_eos": True,
        "prompt": Text(text=text),
        **fields,
    }
    return Request(request_id=request_id, origin=Origin.API, **fields)


def assert_pool_is_empty(engine: Engine) -> None:
    """Nobody holds a page, and nobody is alive."""
    snapshot = engine.snapshot()
    assert snapshot.pool.free_pages + snapshot.pool.reusable_pages == snapshot.pool.total_pages
    assert (snapshot.waiting, snapshot.running, snapshot.parked) == (0, 0, 0)
