"""A model that nobody has used for as long as was set is unloaded; nobody is cut off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.api import (
    EngineSnapshot,
    EngineState,
    LoadModel,
    ModelChanged,
    Origin,
    Request,
    Text,
    UnloadModel,
)
from engine.runs import RunState
from fakes.fake_engine import TINY_MODEL, FakeEngine
from fakes.runs import make_run
from studio.services.idle_unloader import IdleUnloader, WakingEngine


class Rig:
    def __init__(self, limit_min: int) -> None:
        self.now_s = 0.0
        self.engine = FakeEngine()
        self.unloader = IdleUnloader(
            self.engine, lambda: limit_min, clock=lambda: self.now_s, is_threaded=False
        )

    def at(self, minutes: float) -> bool:
        self.now_s = minutes * 60
        return self.unloader.check()


def test_it_is_unloaded_after_that_time_and_only_then() -> None:
    rig = Rig(limit_min=10)
    assert not rig.at(9.9)
    assert rig.at(10)
    assert rig.engine.commands == [UnloadModel(only_if_idle=True)]
    assert not rig.at(100), "there is no model any more"


def test_every_use_starts_the_time_anew() -> None:
    rig = Rig(limit_min=10)
    rig.now_s = 9 * 60
    rig.engine.emit(ModelChanged(state=rig.engine.snapshot().state, model=None))
    assert not rig.at(18)
    rig.engine.publish(make_run("chat-1"))
    assert not rig.at(60), "somebody is in it"
    rig.engine.publish()
    assert not rig.at(69)
    assert rig.at(70)


def test_a_chat_that_waits_for_its_user_is_no_use() -> None:
    rig = Rig(limit_min=10)
    rig.engine.publish(make_run("chat-1", RunState.AWAITS_OWNER))
    assert rig.at(10)


@pytest.mark.parametrize("minutes", [1, 1000])
def test_zero_is_never(minutes: int) -> None:
    assert not Rig(limit_min=0).at(minutes)


def test_its_thread_ends_with_it() -> None:
    unloader = IdleUnloader(FakeEngine(), lambda: 0)
    unloader.close()


def test_the_next_request_brings_the_model_back_before_it_is_taken_up() -> None:
    rig = Rig(limit_min=10)
    rig.engine.auto = False
    waking = WakingEngine(rig.engine, rig.unloader)
    request = Request(request_id="a", origin=Origin.GUI, prompt=Text(text="x"))
    waking.submit(request)
    assert rig.engine.commands == [], "it is there"
    options = rig.engine.snapshot().options
    assert rig.at(100)
    rig.engine._snapshot = EngineSnapshot()
    rig.engine.emit(ModelChanged(state=EngineState.NO_MODEL, model=None))
    waking.submit(replace(request, request_id="b"))
    waking.submit(replace(request, request_id="c"))
    assert options is not None
    assert rig.engine.commands[1:] == [
        LoadModel(path=TINY_MODEL.path, name="tiny", options=options, only_if_idle=True)
    ]
    assert list(rig.engine.requests) == ["a", "b", "c"]


def test_a_model_that_the_user_has_unloaded_stays_away() -> None:
    rig = Rig(limit_min=10)
    waking = WakingEngine(rig.engine, rig.unloader)
    waking.control(UnloadModel())
    waking.submit(Request(request_id="a", origin=Origin.GUI, prompt=Text(text="x")))
    assert rig.engine.commands == [UnloadModel()]
