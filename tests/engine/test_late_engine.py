"""An engine that is made later: what is asked before is answered by the real one, in the order of asking."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from engine.api import (
    EngineEvent,
    EngineSnapshot,
    EngineState,
    Finished,
    LoadModel,
    LoadOptions,
    ModelChanged,
    Text,
    Tokenize,
    UnloadModel,
)
from engine.errors import ModelUnavailable
from engine.late_engine import LateEngine
from fakes.builders import make_request
from fakes.fake_engine import FakeEngine

LOAD = LoadModel(path=Path("/m.gguf"), name="m", options=LoadOptions())


def test_what_was_asked_before_is_done_in_its_order_and_heard_of() -> None:
    real, heard = FakeEngine(ready=False), list[EngineEvent]()
    late = LateEngine(lambda: real)
    late.subscribe(heard.extend)
    late.subscribe(pytest.fail)()  # nobody listens any more
    late.control(LOAD)
    late.submit(make_request(request_id="one"))
    late.abort("two")
    assert (real.commands, real.requests) == ([], {})
    late.make()
    assert (real.commands, list(real.requests), real.aborted) == ([LOAD], ["one"], ["two"])
    states = [event.state for event in heard if isinstance(event, ModelChanged)]
    assert states == [EngineState.LOADING, EngineState.READY]
    assert isinstance(heard[-1], Finished)
    late.control(UnloadModel())
    assert real.commands[-1] == UnloadModel()


def test_before_it_is_made_it_has_no_model() -> None:
    late = LateEngine(FakeEngine)
    assert late.snapshot() == EngineSnapshot()
    assert late.count_tokens(Text(text="a b")) is None
    with pytest.raises(ModelUnavailable):
        late.read_text(Tokenize(parts=("a",))).result()
    late.make()
    assert late.snapshot().state is EngineState.READY
    assert late.count_tokens(Text(text="a b")) == 2
    assert late.read_text(Tokenize(parts=("a",))).result().token_ids == (1,)


def test_it_is_made_once_and_not_after_its_end() -> None:
    made: list[FakeEngine] = []
    late = LateEngine(lambda: made.append(FakeEngine()) or made[0])  # type: ignore[func-returns-value]
    late.make()
    late.make()
    assert len(made) == 1
    over = LateEngine(pytest.fail)
    over.shutdown()
    over.make()
    assert over.snapshot() == EngineSnapshot()


def test_its_end_waits_for_one_that_is_being_made_and_ends_it() -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    class Slow(FakeEngine):
        def __init__(self) -> None:
            begun.set()
            assert go_on.wait(60)
            super().__init__()

        def shutdown(self) -> None:
            ended.set()

    late = LateEngine(Slow)
    making = threading.Thread(target=late.make)
    making.start()
    assert begun.wait(60)
    ending = threading.Thread(target=late.shutdown)
    ending.start()
    late.control(LOAD)
    assert late.snapshot() == EngineSnapshot(), "nobody is held up"
    go_on.set()
    making.join(60)
    ending.join(60)
    assert ended.is_set()
