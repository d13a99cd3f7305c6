"""Who hears the engine. `publish` runs on the engine thread; subscribing and leaving may happen on any thread."""

from __future__ import annotations

import threading

from engine.api import EngineEvent, Listener, Unsubscribe


class EventBus:
    """Passes each step's events, as one immutable tuple, to every listener. Listeners must not block or raise."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()

    def subscribe(self, listener: Listener) -> Unsubscribe:
        """Add a listener; the returned function removes it and may be called twice."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return unsubscribe

    def publish(self, events: tuple[EngineEvent, ...]) -> None:
        """Hand out `events` in order; an empty tuple wakes nobody."""
        if events:
            for listener in self._listeners:
                listener(events)
