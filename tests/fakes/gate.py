"""Holds the engine's thread between two steps, so that what a test does meanwhile happens at one moment for the engine.

However long any thread takes: requests and commands that come while it is shut are all there when it goes on.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

from engine.api import EngineEvent, EnginePort, Finished, Origin, Request, Text, TokenDelta

_DUMMY = "gate"


class Gate:
    """Open until `shut` or `shut_at`, which take effect once `is_shut`."""

    def __init__(self, engine: EnginePort) -> None:
        self.engine = engine
        self._written: Counter[str] = Counter()
        self._goal: tuple[int, int] | None = None
        self._look: Callable[[], bool] | None = None
        self._shut = threading.Event()
        self._opened = threading.Event()
        self._has_ended = False
        self._stop = engine.subscribe(self._hear)

    @property
    def is_shut(self) -> bool:
        return self._shut.is_set()

    def shut(self) -> None:
        """Stop the engine after a step that does no more than answer a request of ours."""
        self.engine.submit(
            Request(
                request_id=_DUMMY,
                origin=Origin.API,
                prompt=Text(text="x"),
                max_tokens=1,
                ignore_eos=True,
            )
        )

    def shut_at(self, num_requests: int, num_tokens: int) -> None:
        """Stop the engine when so many requests have each written so many tokens from now on."""
        self._written.clear()
        self._goal = (num_requests, num_tokens)

    def shut_when(self, look: Callable[[], bool]) -> None:
        """Stop the engine after the first step after which this holds; the engine's thread asks."""
        self._look = look

    def open(self) -> None:
        """Let the engine go on."""
        self._shut.clear()
        self._opened.set()

    def close(self) -> None:
        """Let it go on for good."""
        self._has_ended = True
        self.open()
        self._stop()

    def _hear(self, events: tuple[EngineEvent, ...]) -> None:
        for event in events:
            if isinstance(event, TokenDelta):
                self._written[event.request_id] += len(event.token_ids)
        is_asked = any(isinstance(one, Finished) and one.request_id == _DUMMY for one in events)
        if (is_asked or self._is_reached() or self._is_seen()) and not self._has_ended:
            self._opened.clear()
            self._shut.set()
            self._opened.wait()  # whoever shut it looks at the time, and closes it in any case

    def _is_seen(self) -> bool:
        if self._look is None or not self._look():
            return False
        self._look = None
        return True

    def _is_reached(self) -> bool:
        if self._goal is None:
            return False
        num_requests, num_tokens = self._goal
        if sum(count >= num_tokens for count in self._written.values()) < num_requests:
            return False
        self._goal = None
        return True
