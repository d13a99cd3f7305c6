"""How long a test waits for what must happen. Only time in which the process ran counts.

A process that is stopped, or gets no core for minutes, finds every deadline by the clock behind it when it goes on,
though nothing has had time to happen. Here the time between two looks counts no more than `_SLICE_S`, however long it
was. Any thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")

PATIENCE_S = 120.0
_SLICE_S = 0.1
_LOOK_S = 0.001


class Patience:
    """Runs out when somebody has looked for so many seconds."""

    def __init__(
        self, seconds: float = PATIENCE_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._left_s = seconds
        self._clock = clock
        self._looked_s = clock()

    def spend(self, what: str = "a condition") -> None:
        """Say that it did not happen yet. Raises TimeoutError when that has been said for long enough."""
        before_s, self._looked_s = self._looked_s, self._clock()
        self._left_s -= min(self._looked_s - before_s, _SLICE_S)
        if self._left_s < 0:
            raise TimeoutError(f"{what} did not come")


async def until(look: Callable[[], object], patience: Patience | None = None) -> None:
    """Let the loop run until the condition holds."""
    patience = patience or Patience()
    while not look():
        patience.spend()
        await asyncio.sleep(_LOOK_S)


def wait_for(news: threading.Condition, look: Callable[[], _T], what: str = "a condition") -> _T:
    """The same in a thread that holds the lock of what tells of changes; what it saw at last."""
    patience = Patience()
    while not (seen := look()):
        patience.spend(what)
        news.wait(_SLICE_S)
    return seen


def wait_set(event: threading.Event, what: str = "a word from another thread") -> None:
    """The same for an event."""
    patience = Patience()
    while not event.wait(_SLICE_S):
        patience.spend(what)


async def bounded(work: Coroutine[Any, Any, _T], patience: Patience | None = None) -> _T:
    """What it comes to. When it takes too long it is cancelled, and TimeoutError shows where it had waited."""
    patience = patience or Patience()
    task = asyncio.ensure_future(work)
    while not (await asyncio.wait({task}, timeout=_SLICE_S))[0]:
        try:
            patience.spend("the end of the test")
        except TimeoutError as late:
            task.cancel()
            try:
                return await task
            except asyncio.CancelledError as where:
                raise late from where
    return task.result()
