"""What `layby serve` waits for on its main thread: news of the model, and a signal that ends the program."""

from __future__ import annotations

import queue

from engine.api import EngineEvent, EngineState, ModelChanged

_LOOK_S = 1.0


class ModelNews:
    """Heard on the engine's thread, waited for on the main one."""

    def __init__(self) -> None:
        self._news: queue.SimpleQueue[ModelChanged | None] = queue.SimpleQueue()

    def hear(self, events: tuple[EngineEvent, ...]) -> None:
        """A listener of the engine."""
        for event in events:
            if isinstance(event, ModelChanged):
                self._news.put(event)

    def stop(self) -> None:
        """End the wait. For a signal's handler too."""
        self._news.put(None)

    def wait_until_ready(self) -> bool:
        """False when a stop came first; raises the engine's own error when the model cannot be loaded."""
        while (event := self._next()) is not None:
            if event.error is not None:
                raise event.error
            if event.state is EngineState.READY:
                return True
        return False

    def wait_for_stop(self) -> None:
        while self._next() is not None:
            pass

    def _next(self) -> ModelChanged | None:
        """The next event, or None for a stop. Wakes up now and then, or Windows would not deliver Ctrl+C."""
        while True:
            try:
                return self._news.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
