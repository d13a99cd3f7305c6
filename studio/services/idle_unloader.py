"""Unloads the model once nobody has used it for as long as the user has set.

A small thread of its own, so that it works in the window and in `layby serve` alike; the engine itself makes sure that
nobody is cut off (`UnloadModel.only_if_idle`). Listens to the engine, whose every event counts as use.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from engine.api import EngineEvent, EnginePort, EngineState, UnloadModel

_log = logging.getLogger(__name__)

_LOOK_S = 5.0


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
        self._ended = threading.Event()
        self._unsubscribe = engine.subscribe(self._on_events)
        self._thread: threading.Thread | None = None
        if is_threaded:
            self._thread = threading.Thread(target=self._run, name="layby-idle", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        self._unsubscribe()
        if self._thread is not None:
            self._thread.join()

    def check(self) -> bool:
        """Ask for the model to be unloaded if it has been idle for long enough; whether that was done."""
        snapshot, limit_s = self._engine.snapshot(), self._limit_min() * 60
        if snapshot.state is not EngineState.READY or snapshot.runs:
            self._used_s = self._clock()
            return False
        if not limit_s or self._clock() - self._used_s < limit_s:
            return False
        _log.info("the model has been idle for %d min: it is unloaded", limit_s // 60)
        self._used_s = self._clock()
        self._engine.control(UnloadModel(only_if_idle=True))
        return True

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_S):
            self.check()

    def _on_events(self, _events: tuple[EngineEvent, ...]) -> None:
        self._used_s = self._clock()
