"""Unloads the model once nobody has used it for as long as the user has set, and loads it again for the next request.

Programs may have it leave sooner, never later. A small thread of its own, so that it works in the window and in
`layby serve` alike; the engine itself makes sure that nobody is cut off (`UnloadModel.only_if_idle`). Listens to the
engine, whose every event counts as use.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from engine.api import (
    Command,
    EngineEvent,
    EnginePort,
    EngineSnapshot,
    EngineState,
    Failed,
    Finished,
    Listener,
    LoadModel,
    ModelChanged,
    Prompt,
    Request,
    Started,
    TextAnswer,
    TextQuestion,
    UnloadModel,
    Unsubscribe,
)
from engine.runs import RunState

_log = logging.getLogger(__name__)

_LOOK_S = 5.0


@dataclass(frozen=True, slots=True)
class _Stay:
    """What a program has wished, and with which request."""

    seconds: float | None = None
    request_id: str = ""
    is_due: bool = False
    """Whether that has ended, from when on it counts."""


class IdleUnloader:
    """Runs until it is closed. `check` is what the thread does every few seconds."""

    def __init__(
        self,
        engine: EnginePort,
        limit_min: Callable[[], int],
        *,
        clock: Callable[[], float] = time.monotonic,
        is_threaded: bool = True,
    ) -> None:
        """`limit_min` is asked at each look; 0 is never."""
        self._engine = engine
        self._limit_min = limit_min
        self._clock = clock
        self._used_s = clock()
        self._stay = _Stay()
        self._unloaded: LoadModel | None = None
        self._has_ended = False
        self._news = threading.Event()
        self._unsubscribe = engine.subscribe(self._on_events)
        self._thread: threading.Thread | None = None
        if is_threaded:
            self._thread = threading.Thread(target=self._run, name="layby-idle", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._has_ended = True
        self._news.set()
        self._unsubscribe()
        if self._thread is not None:
            self._thread.join()

    def stay(self, seconds: float | None, *, request_id: str = "") -> None:
        """A program wants the model that is there to stay for so long after this request of its, or after now.

        None: as long as the user has set, which is the most anyway. It holds until somebody else uses the model. Any
        thread.
        """
        self._stay = _Stay(seconds, request_id, is_due=not request_id)
        self._news.set()

    def left_s(self) -> float | None:
        """Seconds until the model is unloaded, if nobody uses it; None: it stays."""
        limit_s = self._limit_s()
        return None if limit_s is None else max(0.0, limit_s - (self._clock() - self._used_s))

    def check(self) -> bool:
        """Ask for the model to be unloaded if it has been idle for long enough; whether that was done."""
        snapshot, limit_s = self._engine.snapshot(), self._limit_s()
        in_use = any(run.state is not RunState.AWAITS_OWNER for run in snapshot.runs)
        if snapshot.state is not EngineState.READY or in_use:
            self._used_s = self._clock()
            return False
        if limit_s is None or self._clock() - self._used_s < limit_s:
            return False
        _log.info("the model has been idle for %d s: it is unloaded", limit_s)
        self._used_s, self._stay = self._clock(), _Stay()
        if snapshot.model is not None and snapshot.options is not None:
            model = snapshot.model
            self._unloaded = LoadModel(
                path=model.path, name=model.name, options=snapshot.options, only_if_idle=True
            )
        self._engine.control(UnloadModel(only_if_idle=True))
        return True

    def is_resting(self) -> bool:
        """Whether a model has been unloaded for want of use and the next request brings it back."""
        return self._unloaded is not None and self._engine.snapshot().state is EngineState.NO_MODEL

    def wake(self) -> None:
        """Have the model that was unloaded for want of use loaded again; any thread. Nothing if another is there."""
        unloaded, self._unloaded = self._unloaded, None
        if unloaded is not None and self._engine.snapshot().state is EngineState.NO_MODEL:
            self._engine.control(unloaded)

    def _limit_s(self) -> float | None:
        stay = self._stay
        limits = (self._limit_min() * 60 or None, stay.seconds if stay.is_due else None)
        return min((each for each in limits if each is not None), default=None)

    def _run(self) -> None:
        while True:
            self._news.wait(_LOOK_S)
            self._news.clear()
            if self._has_ended:
                return
            self.check()

    def _on_events(self, events: tuple[EngineEvent, ...]) -> None:
        self._used_s = self._clock()
        for event in events:
            if isinstance(event, ModelChanged) and event.state is EngineState.LOADING:
                self._unloaded, self._stay = None, _Stay()
            elif isinstance(event, Started) and event.request_id != self._stay.request_id:
                self._stay = _Stay()
            elif isinstance(event, Finished | Failed) and event.request_id == self._stay.request_id:
                self._stay = replace(self._stay, is_due=True)
                self._news.set()


class WakingEngine:
    """The engine as the window's chats see it: a request brings back the model that was unloaded for want of use.

    The engine loads before it takes the request up, for it takes messages in their order.
    """

    def __init__(self, engine: EnginePort, idle: IdleUnloader) -> None:
        self._engine = engine
        self._idle = idle

    def submit(self, request: Request) -> None:
        self._idle.wake()
        self._engine.submit(request)

    def abort(self, request_id: str) -> None:
        self._engine.abort(request_id)

    def subscribe(self, listener: Listener) -> Unsubscribe:
        return self._engine.subscribe(listener)

    def control(self, command: Command) -> None:
        self._engine.control(command)

    def snapshot(self) -> EngineSnapshot:
        return self._engine.snapshot()

    def count_tokens(self, prompt: Prompt) -> int | None:
        return self._engine.count_tokens(prompt)

    def read_text(self, question: TextQuestion) -> Future[TextAnswer]:
        return self._engine.read_text(question)

    def shutdown(self) -> None:
        self._engine.shutdown()
