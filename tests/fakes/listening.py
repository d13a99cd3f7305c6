"""Listens to an engine from a test's thread: waits for events, collects texts. No sleeping, no polling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from engine.api import (
    EngineEvent,
    EnginePort,
    EngineState,
    Failed,
    Finished,
    ModelChanged,
    Request,
    TokenDelta,
)

TIMEOUT_S = 120.0


class Ear:
    """Subscribes at once; `wait_for` returns the first event, past or future, that fits."""

    def __init__(self, engine: EnginePort) -> None:
        self.events: list[EngineEvent] = []
        self._news = threading.Condition()
        self.close = engine.subscribe(self._hear)

    def _hear(self, events: tuple[EngineEvent, ...]) -> None:
        with self._news:
            self.events.extend(events)
            self._news.notify_all()

    def wait_for(self, fits: Callable[[EngineEvent], bool], what: str = "an event") -> EngineEvent:
        return self.wait_until(lambda: next((e for e in self.events if fits(e)), None), what)

    def wait_until(self, look: Callable[[], object], what: str = "a condition") -> object:
        with self._news:
            found = self._news.wait_for(look, timeout=TIMEOUT_S)
        assert found, f"{what} did not come; heard {self.events[-5:]}"
        return found

    def of(self, request_id: str) -> list[EngineEvent]:
        return [e for e in self.events if getattr(e, "request_id", None) == request_id]

    def wait_end(self, request_id: str) -> Finished | Failed:
        end = self.wait_for(
            lambda e: isinstance(e, Finished | Failed) and e.request_id == request_id,
            f"the end of {request_id}",
        )
        assert isinstance(end, Finished | Failed)
        return end

    def wait_ready(self) -> ModelChanged:
        """The end of a load; fails with the engine's own reason if it did not succeed."""
        event = self.wait_for(
            lambda e: (
                isinstance(e, ModelChanged) and e.state in (EngineState.READY, EngineState.FAILED)
            ),
            "the model",
        )
        assert isinstance(event, ModelChanged)
        assert event.state is EngineState.READY, event.error
        return event

    def text(self, request_id: str) -> str:
        return "".join(e.text for e in self.of(request_id) if isinstance(e, TokenDelta))

    def tokens(self, request_id: str) -> list[int]:
        return [i for e in self.of(request_id) if isinstance(e, TokenDelta) for i in e.token_ids]


def submit_together(engine: EnginePort, requests: Iterable[Request]) -> None:
    """Submit so that all are there before anybody has a second token, whatever turns the two threads take."""
    are_all_there, here = threading.Event(), threading.current_thread()

    def hold(events: tuple[EngineEvent, ...]) -> None:
        is_engines = threading.current_thread() is not here
        if is_engines and any(isinstance(event, TokenDelta) for event in events):
            assert are_all_there.wait(TIMEOUT_S)

    stop = engine.subscribe(hold)
    for request in requests:
        engine.submit(request)
    are_all_there.set()
    stop()


def run_all(engine: EnginePort, requests: Iterable[Request]) -> Ear:
    """Submit all at once and wait for every end."""
    ear = Ear(engine)
    requests = list(requests)
    submit_together(engine, requests)
    for request in requests:
        ear.wait_end(request.request_id)
    ear.close()
    return ear
