"""Coalesces changes: however often something is marked, it is redrawn at most once per frame.

GUI thread. The first change after a quiet time is drawn at once, so that nothing feels late; while the window is hidden
nothing is drawn and the marks wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QElapsedTimer, QObject, QTimer

FRAME_MS = 33
_REST = 8
"""A frame is followed by the next one after so many times what it and all else took of the processor: the window
leaves the rest to the engine."""
_LONGEST_MS = 100
"""But by no more than this: ten frames a second look alive."""
FIGURES_MS = 250


class FrameTicker(QObject):
    """Calls each marked function once per flush, flushes at least `interval_ms` apart, more after a dear one."""

    def __init__(
        self,
        parent: QObject,
        interval_ms: int = FRAME_MS,
        *,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        super().__init__(parent)
        self._cpu_s = cpu_s
        self.num_flushes = 0
        self._marked: dict[Callable[[], None], None] = {}
        self._is_paused = False
        self._is_resting = False
        self._began_s = 0.0
        self._since_flush = QElapsedTimer()
        self._timer = QTimer(self)
        self._interval_ms = interval_ms
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._on_rested)
        self._at_once = QTimer(self)
        self._at_once.setSingleShot(True)
        self._at_once.timeout.connect(self._flush)

    def mark(self, redraw: Callable[[], None]) -> None:
        """Have `redraw` called with the next flush. O(1); the same (bound) function is called once."""
        self._marked[redraw] = None
        self._schedule()

    def unmark(self, redraw: Callable[[], None]) -> None:
        """Forget it; for a view that goes away."""
        self._marked.pop(redraw, None)

    def set_paused(self, *, is_paused: bool) -> None:
        """Hold all marks back while nobody can see the window."""
        self._is_paused = is_paused
        self._schedule()

    def _schedule(self) -> None:
        if self._marked and not (self._is_paused or self._is_resting or self._at_once.isActive()):
            self._at_once.start()

    def _flush(self) -> None:
        if self._is_paused:
            return
        self._is_resting = True
        self._began_s = self._cpu_s()
        self._since_flush.start()
        self._timer.start(self._interval_ms)
        self.num_flushes += 1
        marked, self._marked = self._marked, {}
        for redraw in marked:
            redraw()

    def _on_rested(self) -> None:
        """Now what the frame took is known, painting included, which comes after the flush."""
        wanted_ms = min(1e3 * _REST * (self._cpu_s() - self._began_s), _LONGEST_MS)
        left_ms = round(wanted_ms - self._since_flush.elapsed())
        if left_ms > 0:
            self._timer.start(left_ms)
            return
        self._is_resting = False
        self._schedule()
