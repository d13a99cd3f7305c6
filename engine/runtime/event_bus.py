"""Who hears the engine. `publish` runs on the engine thread; subscribing and leaving may happen on any thread."""

from __future__ import annotations

import logging
import threading
import time

from engine.api import EngineEvent, Listener, Unsubscribe

_LOG = logging.getLogger(__name__)


class EventBus:
    """Passes each step's events, as one immutable tuple, to every listener.

    Listeners must not block. One that raises is logged, and hears on: its mistake ends nobody's requests.
    """

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()
        self._unheard: list[threading.Event] = []
        """Of the latest events: what listeners set once they have passed them on."""

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
            heard = (_tell(listener, events) for listener in self._listeners)
            self._unheard = [one for one in heard if one is not None]

    def wait_until_heard(self, most_s: float) -> None:
        """Let listeners pass the latest events on, for `most_s` seconds at most."""
        until_s = time.monotonic() + most_s
        for one in self._unheard:
            one.wait(max(until_s - time.monotonic(), 0.0))


def _tell(listener: Listener, events: tuple[EngineEvent, ...]) -> threading.Event | None:
    try:
        return listener(events)
    except Exception as error:  # noqa: BLE001 - whoever it is of, the engine and the others go on
        _LOG.error("a listener of the engine failed", exc_info=error)
        return None
