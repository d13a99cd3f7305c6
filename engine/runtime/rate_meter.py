"""Tokens per second over the last few seconds. Engine thread; the clock is the caller's."""

from __future__ import annotations

from collections import deque

_WINDOW_S = 3.0


class RateMeter:
    """Counts tokens by time; `rate` forgets what is older than three seconds."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int]] = deque()
        self._tokens = 0

    def add(self, now_s: float, tokens: int) -> None:
        self._steps.append((now_s, tokens))
        self._tokens += tokens
        if self._steps[0][0] < now_s - _WINDOW_S:
            self._forget(now_s)

    def rate(self, now_s: float) -> float:
        """Tokens per second between the oldest step remembered and `now_s`; 0 when there are fewer than two."""
        self._forget(now_s)
        if len(self._steps) < 2:
            return 0.0
        oldest_s, oldest_tokens = self._steps[0]
        return (self._tokens - oldest_tokens) / max(now_s - oldest_s, 1e-6)

    def _forget(self, now_s: float) -> None:
        while self._steps and self._steps[0][0] < now_s - _WINDOW_S:
            self._tokens -= self._steps.popleft()[1]
