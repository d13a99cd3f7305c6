"""Coalesces changes: however often something is marked, it is redrawn at most once per frame.

GUI thread. The first change after a quiet time is drawn at once, so that nothing feels late; while the window is hidden
nothing is drawn and the marks wait.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

FRAME_MS = 33
_SHARE_OF_ONE_MORE = 1 / 4
"""Of the time between two flushes, for each function beyond the first: four panes get 17 frames a second, one 30."""
FIGURES_MS = 250


class FrameTicker(QObject):
    """Calls each marked function once per flush, flushes at least `interval_ms` apart, more after one of many."""

    def __init__(self, parent: QObject, interval_ms: int = FRAME_MS) -> None:
        super().__init__(parent)
        self.num_flushes = 0
        self._marked: dict[Callable[[], None], None] = {}
        self._is_paused = False
        self._is_resting = False
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
        self.num_flushes += 1
        marked, self._marked = self._marked, {}
        many = 1 + (len(marked) - 1) * _SHARE_OF_ONE_MORE
        self._timer.start(round(self._interval_ms * many))
        for redraw in marked:
            redraw()

    def _on_rested(self) -> None:
        self._is_resting = False
        self._schedule()
