"""Tokens are counted as the engine reads a prompt, from any thread, and without a model not at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.api import (
    Chat,
    ChatMessage,
    LoadModel,
    LoadOptions,
    Origin,
    Prompt,
    Request,
    Started,
    Text,
    TokenIds,
)
from engine.runtime.engine import Engine
from fakes.listening import Ear, run_all
from fakes.tiny_files import write_tiny_gguf


def load(engine: Engine, folder: Path) -> None:
    ear = Ear(engine)
    engine.control(
        LoadModel(path=write_tiny_gguf(folder), name="tiny", options=LoadOptions(pool_tokens=2048))
    )
    ear.wait_ready()
    ear.close()


@pytest.mark.parametrize(
    "prompt",
    [
        Text(text="the quick brown fox"),
        TokenIds(ids=(1, 2, 3)),
        Chat(messages=(ChatMessage(role="user", content="the quick brown fox"),)),
    ],
)
def test_the_count_is_what_a_request_starts_with(
    engine: Engine, tmp_path: Path, prompt: Prompt
) -> None:
    load(engine, tmp_path)
    request = Request(request_id="a", origin=Origin.API, prompt=prompt, max_tokens=1)
    events = run_all(engine, [request]).of("a")
    started = next(event for event in events if isinstance(event, Started))
    assert engine.count_tokens(prompt) == started.prompt_tokens


def test_many_threads_may_count_at_once(engine: Engine, tmp_path: Path) -> None:
    load(engine, tmp_path)
    text = Text(text="some words " * 50)
    with ThreadPoolExecutor(4) as pool:
        counts = set(pool.map(lambda _: engine.count_tokens(text), range(40)))
    assert len(counts) == 1


def test_without_a_model_nothing_is_counted(engine: Engine) -> None:
    assert engine.count_tokens(Text(text="words")) is None
