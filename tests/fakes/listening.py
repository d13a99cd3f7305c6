"""Listens to an engine from a test's thread: waits for events, collects texts. No sleeping, no polling."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from engine.api import (
    EngineEvent,
    EnginePort,
    EngineState,
    Failed,
    Finished,
    ModelChanged,
    Origin,
    Request,
    TokenDelta,
    TokenIds,
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


@contextmanager
def held(engine: EnginePort) -> Iterator[None]:
    """The engine's thread stands still between two steps: what is asked inside is all there in the next one.

    It is held where it tells the end of a request without a prompt, which takes no step and no page.
    """
    is_held, goes_on, here = threading.Event(), threading.Event(), threading.current_thread()
    plug = Request(request_id="holds the engine", origin=Origin.API, prompt=TokenIds(ids=()))

    def hold(events: tuple[EngineEvent, ...]) -> None:
        if any(
            isinstance(e, Finished | Failed) and e.request_id == plug.request_id for e in events
        ):
            is_held.set()
            assert threading.current_thread() is here or goes_on.wait(TIMEOUT_S)

    stop = engine.subscribe(hold)
    engine.submit(plug)
    try:
        assert is_held.wait(TIMEOUT_S)
        yield
    finally:
        goes_on.set()
        stop()


def submit_together(engine: EnginePort, requests: Iterable[Request]) -> None:
    """Submit so that none has begun before all are there, whatever turns the two threads take."""
    with held(engine):
        for request in requests:
            engine.submit(request)


def run_all(engine: EnginePort, requests: Iterable[Request]) -> Ear:
    """Submit all at once and wait for every end."""
    requests = list(requests)
    with held(engine):
        ear = Ear(engine)
        for request in requests:
            engine.submit(request)
    for request in requests:
        ear.wait_end(request.request_id)
    ear.close()
    return ear
