"""The thread on which copies are ended that need not land before a step. It calls torch for nothing but a fence."""

from __future__ import annotations

import logging
import queue
import threading
from typing import Protocol

from engine.runtime.copies import Finish

_LOG = logging.getLogger(__name__)
COPY_FAILED = "pages of a parked request could not be copied: %r"


class Tell(Protocol):
    """Hears what became of a copy."""

    def __call__(self, *, is_made: bool) -> object: ...


class CopyWorker:
    """Ends copies in the order they were given; its thread starts with the first. `give` and `close`: engine thread."""

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Finish, Tell] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def give(self, finish: Finish, tell: Tell) -> None:
        """Call `finish`, then `tell` whether the copy was made, both on the worker's thread."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="layby-copies", daemon=True)
            self._thread.start()
        self._tasks.put((finish, tell))

    def close(self) -> None:
        """Wait until all that was given has ended. Nothing may be given afterwards."""
        if self._thread is not None:
            self._tasks.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            finish, tell = task
            try:
                finish()
            except Exception as error:  # noqa: BLE001 - whoever waits for this copy must hear of it
                _LOG.warning(COPY_FAILED, error)
                tell(is_made=False)
            else:
                tell(is_made=True)
