"""The engine thread's inbox: messages come in from any thread, until it is closed."""

from __future__ import annotations

import math
import queue
import threading
from collections import deque
from contextlib import suppress

from engine.runtime.messages import Message


class Inbox:
    """`put` and `close` are for any thread, the rest for the engine's alone."""

    def __init__(self) -> None:
        self.pending: deque[Message] = deque()
        """Taken out, not yet applied."""
        self._queue: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._is_closed = False
        self._door = threading.Lock()
        """Held for the moment of a put, so that no message slips in after the end."""

    def put(self, message: Message) -> bool:
        """Leave a message; False, and it is gone, once the inbox is closed."""
        with self._door:
            if not self._is_closed:
                self._queue.put(message)
            return not self._is_closed

    def close(self) -> None:
        """Take no more messages."""
        with self._door:
            self._is_closed = True

    def take(self) -> None:
        """Move all that is there to `pending`."""
        while not self._queue.empty():
            self.pending.append(self._queue.get())

    def wait(self, timeout_s: float) -> None:
        """Wait for one message, for ever where the time is infinite, and move it to `pending`."""
        with suppress(queue.Empty):
            self.pending.append(
                self._queue.get(timeout=None if timeout_s == math.inf else timeout_s)
            )
