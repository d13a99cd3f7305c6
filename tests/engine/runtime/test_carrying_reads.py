"""Requests whose prompt is being read for itself go on, too, when the model is loaded anew."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest

from engine.api import (
    Embedded,
    Finished,
    LoadModel,
    LoadOptions,
    Origin,
    Parked,
    PromptProgress,
    PromptRead,
    Request,
    Restored,
    SamplingParams,
    TokenIds,
    Wanted,
)
from engine.runtime.engine import Engine
from fakes.listening import Ear, run_all
from fakes.parking_rig import ask, assert_nothing_is_held, load
from fakes.tiny_files import write_tiny_gguf

PROMPT = TokenIds(ids=tuple(range(10, 130)))
BATCH_TOKENS = 16
RELOADED_AT = 48
"""Tokens read when the load is asked for: in the middle of the prompt."""


def reload_at(engine: Engine, path: Path, request_id: str) -> None:
    """Have the model loaded with another pool once so much of the prompt has been read."""
    done: list[bool] = []

    def command(events: tuple[object, ...]) -> None:
        for event in events:
            is_there = isinstance(event, PromptProgress) and event.computed_tokens >= RELOADED_AT
            if is_there and not done:
                done.append(True)
                options = LoadOptions(pool_tokens=1024, threads=1, batch_tokens=BATCH_TOKENS)
                engine.control(LoadModel(path=path, name="tiny", options=options, carries_on=True))

    engine.subscribe(command)


@pytest.mark.parametrize("pooling", [gguf.PoolingType.MEAN, gguf.PoolingType.LAST])
def test_an_embedding_goes_on(engine: Engine, tmp_path: Path, pooling: gguf.PoolingType) -> None:
    path = write_tiny_gguf(tmp_path, pooling=pooling)
    request = Request(
        request_id="a", origin=Origin.API, prompt=PROMPT, wants=Wanted.EMBEDDING, max_tokens=0
    )
    load(engine, path, batch_tokens=BATCH_TOKENS)
    (alone,) = (e for e in run_all(engine, [request]).of("a") if isinstance(e, Embedded))
    load(engine, path, batch_tokens=BATCH_TOKENS)
    ear = Ear(engine)
    reload_at(engine, path, "a")
    engine.submit(request)
    assert isinstance(ear.wait_end("a"), Finished)
    (carried,) = (event for event in ear.of("a") if isinstance(event, Embedded))
    assert carried.values == alone.values
    assert {Parked, Restored} <= set(map(type, ear.of("a")))
    assert engine.snapshot().pool.total_pages == 1024 // engine.snapshot().pool.page_tokens


def test_a_prompt_that_is_scored_goes_on(engine: Engine, tmp_path: Path) -> None:
    path = write_tiny_gguf(tmp_path)
    request = ask(
        "a",
        prompt=PROMPT,
        sampling=SamplingParams(temperature=0, logprobs=1),
        max_tokens=20,
        tells_prompt=True,
    )
    load(engine, path, batch_tokens=BATCH_TOKENS)
    alone = run_all(engine, [request])
    load(engine, path, batch_tokens=BATCH_TOKENS)
    ear = Ear(engine)
    reload_at(engine, path, "a")
    engine.submit(request)
    assert isinstance(ear.wait_end("a"), Finished)

    def told(heard: Ear) -> object:
        (read,) = (event for event in heard.of("a") if isinstance(event, PromptRead))
        return read.tokens[1:]

    assert told(ear) == told(alone)
    assert ear.tokens("a") == alone.tokens("a")
    assert {Parked, Restored} <= set(map(type, ear.of("a")))
    assert_nothing_is_held(engine)
