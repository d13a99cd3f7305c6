"""Work that may wait, done in slices between the user's events: highlighting code, laying out rows out of sight.

GUI thread. Work is a generator that yields wherever it may be interrupted. Must not import services.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from PySide6.QtCore import QObject, QTimer
from shiboken6 import isValid

_SLICE_S = 0.004
_PAUSE_MS = 4
"""Between two slices: timers without a pause could starve others."""


class Slices(QObject):
    """One piece of work after another; `start` again with the same owner replaces what it had started."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._works: dict[QObject, Iterator[None]] = {}
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_PAUSE_MS)
        self._timer.timeout.connect(self._run)

    def start(self, owner: QObject, work: Iterator[None]) -> None:
        """Do `work` little by little; an owner that goes away calls `stop`."""
        self._works[owner] = work
        if not self._timer.isActive():
            self._timer.start()

    def stop(self, owner: QObject) -> None:
        """Forget the work of an owner that goes away."""
        self._works.pop(owner, None)

    def _run(self) -> None:
        end_s = perf_counter() + _SLICE_S
        while self._works and perf_counter() < end_s:
            owner, work = next(iter(self._works.items()))
            if not isValid(owner):  # a theme may have come between its goodbye and its end
                del self._works[owner]
                continue
            try:
                next(work)
            except StopIteration:
                if self._works.get(owner) is work:
                    del self._works[owner]
        if self._works:
            self._timer.start()
