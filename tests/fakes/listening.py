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
from engine.runtime.engine import Engine
from engine.runtime.intake import PrepareTask, answer
from fakes.patience import wait_for, wait_set

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
            try:
                return wait_for(self._news, look, what)
            except TimeoutError as error:
                raise AssertionError(f"{error}; heard {self.events[-5:]}") from None

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
            if threading.current_thread() is not here:
                goes_on.wait()

    stop = engine.subscribe(hold)
    engine.submit(plug)
    try:
        wait_set(is_held)
        yield
    finally:
        goes_on.set()
        stop()


class _PromptIntake:
    """Reads prompts where it is asked to: the engine's thread has all answers before it goes on to a step."""

    def __init__(self, engine: Engine) -> None:
        self._deliver = engine._inbox.put
        self.ask = engine._intake.ask
        self.close = engine._intake.close

    def prepare(self, task: PrepareTask) -> None:
        self._deliver(answer(task))


def _read_at_once(engine: EnginePort) -> None:
    """Let what is submitted together begin together, however long the thread that reads prompts would take.

    For good; to be called while the engine is held.
    """
    if isinstance(engine, Engine) and not isinstance(engine._intake, _PromptIntake):
        engine._intake = _PromptIntake(engine)  # type: ignore[assignment]
        if engine._reception is not None:
            engine._reception.intake = engine._intake


def submit_together(engine: EnginePort, requests: Iterable[Request]) -> None:
    """Submit so that none has begun before all are there, and all begin together, whatever turns the threads take."""
    with held(engine):
        _read_at_once(engine)
        for request in requests:
            engine.submit(request)


@contextmanager
def submitted_until(
    engine: EnginePort, requests: Iterable[Request], fits: Callable[[EngineEvent], bool]
) -> Iterator[None]:
    """Submit together; inside, the engine's thread stands still where it told an event that fits."""
    is_there, goes_on = threading.Event(), threading.Event()

    def hold(events: tuple[EngineEvent, ...]) -> None:
        if not is_there.is_set() and any(map(fits, events)):
            is_there.set()
            goes_on.wait()

    stop = engine.subscribe(hold)
    submit_together(engine, requests)
    try:
        wait_set(is_there)
        yield
    finally:
        goes_on.set()
        stop()


def run_all(engine: EnginePort, requests: Iterable[Request]) -> Ear:
    """Submit all at once and wait for every end."""
    requests = list(requests)
    with held(engine):
        _read_at_once(engine)
        ear = Ear(engine)
        for request in requests:
            engine.submit(request)
    for request in requests:
        ear.wait_end(request.request_id)
    ear.close()
    return ear
