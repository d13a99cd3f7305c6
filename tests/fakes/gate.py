"""Holds the engine's thread once replies are under way, so that a test can act before any of them ends."""

from __future__ import annotations

import threading
from collections import Counter

from engine.api import EngineEvent, EnginePort, TokenDelta

_TIMEOUT_S = 120.0


class Gate:
    """Shuts when `num_requests` have each written `num_tokens`; the engine stands still until `open`."""

    def __init__(self, engine: EnginePort, *, num_requests: int, num_tokens: int = 20) -> None:
        self._num_requests = num_requests
        self._num_tokens = num_tokens
        self._written: Counter[str] = Counter()
        self._shut = threading.Event()
        self._opened = threading.Event()
        self._stop = engine.subscribe(self._hear)

    @property
    def is_shut(self) -> bool:
        return self._shut.is_set()

    def open(self) -> None:
        """Let the engine go on, for good."""
        self._opened.set()
        self._stop()

    def _hear(self, events: tuple[EngineEvent, ...]) -> None:
        for event in events:
            if isinstance(event, TokenDelta):
                self._written[event.request_id] += len(event.token_ids)
        ready = sum(count >= self._num_tokens for count in self._written.values())
        if ready >= self._num_requests and not self._opened.is_set():
            self._shut.set()
            assert self._opened.wait(_TIMEOUT_S)
