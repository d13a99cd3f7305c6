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


# --- what programs wish


def gone(rig: Rig) -> bool:
    """Whether the unloader finds that it is time now."""
    return rig.unloader.check()


def test_a_program_may_have_the_model_leave_sooner_and_never_later() -> None:
    rig = Rig(limit_min=10)
    rig.unloader.stay(60)
    assert rig.unloader.left_s() == 60
    assert not rig.at(0.9)
    assert rig.at(1)
    rig = Rig(limit_min=10)
    rig.unloader.stay(3600)
    assert rig.unloader.left_s() == 600
    assert rig.at(10)


def test_where_the_user_has_set_nothing_a_program_may_still_have_it_leave() -> None:
    rig = Rig(limit_min=0)
    assert rig.unloader.left_s() is None
    rig.unloader.stay(0)
    assert gone(rig)
    assert rig.engine.commands == [UnloadModel(only_if_idle=True)]


def test_what_is_wished_with_a_request_counts_from_its_end() -> None:
    rig = Rig(limit_min=0)
    rig.engine.auto = False
    rig.unloader.stay(0, request_id="a")
    assert not gone(rig), "it has not even begun"
    rig.engine.submit(Request(request_id="a", origin=Origin.API, prompt=Text(text="x")))
    rig.engine.start("a")
    assert not gone(rig)
    rig.engine.finish("a")
    assert gone(rig)


def test_a_model_in_use_stays_until_it_is_free() -> None:
    rig = Rig(limit_min=0)
    rig.engine.publish(make_run("chat-1"))
    rig.unloader.stay(0)
    assert not gone(rig)
    rig.engine.publish()
    assert gone(rig)


def test_the_wish_of_one_program_ends_when_somebody_else_uses_the_model() -> None:
    rig = Rig(limit_min=0)
    rig.unloader.stay(0, request_id="a")
    for request_id in ("a", "b"):
        rig.engine.submit(Request(request_id=request_id, origin=Origin.GUI, prompt=Text(text="x")))
    assert not gone(rig)
    assert rig.unloader.left_s() is None


def test_a_wish_is_about_the_model_that_was_there() -> None:
    rig = Rig(limit_min=0)
    rig.unloader.stay(60)
    rig.engine.emit(ModelChanged(state=EngineState.LOADING, model=None))
    assert rig.unloader.left_s() is None


def test_nothing_said_takes_a_wish_back() -> None:
    rig = Rig(limit_min=0)
    rig.unloader.stay(60)
    rig.unloader.stay(None)
    assert rig.unloader.left_s() is None
