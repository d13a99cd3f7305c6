"""Who hears the engine: in order, whatever one of them does."""

from __future__ import annotations

import threading

import pytest

from engine.api import EngineEvent, EngineState, ModelChanged
from engine.runtime.event_bus import EventBus

NEWS = (ModelChanged(state=EngineState.NO_MODEL, model=None),)


def test_a_listener_that_raises_harms_neither_the_others_nor_its_next_news(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus, heard = EventBus(), list[str]()

    def clumsy(_events: tuple[EngineEvent, ...]) -> None:
        heard.append("clumsy")
        raise KeyError("a mistake")

    bus.subscribe(clumsy)
    bus.subscribe(lambda _events: heard.append("other"))
    bus.publish(NEWS)
    bus.publish(NEWS)
    assert heard == ["clumsy", "other"] * 2
    assert [one.getMessage() for one in caplog.records] == ["a listener of the engine failed"] * 2


def test_nobody_is_waited_for_who_has_raised(caplog: pytest.LogCaptureFixture) -> None:
    bus, passed_on = EventBus(), threading.Event()
    passed_on.set()
    bus.subscribe(lambda _events: 1 // 0)  # type: ignore[arg-type,return-value]
    bus.subscribe(lambda _events: passed_on)
    bus.publish(NEWS)
    bus.wait_until_heard(10.0)
    assert len(caplog.records) == 1
