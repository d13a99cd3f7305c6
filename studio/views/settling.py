"""Does a thing when asked, but not over and over in one turn of the loop. GUI thread. Must not import services.

The first ask is answered at once; all others of the same turn together, at its end.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer


class Settling(QObject):
    """`ask` for it; `settle` to have it done now if somebody has asked meanwhile."""

    def __init__(self, do: Callable[[], object], parent: QObject) -> None:
        super().__init__(parent)
        self._do = do
        self._is_wanted = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.settle)

    def ask(self) -> None:
        if self._timer.isActive():
            self._is_wanted = True
            return
        self._timer.start(0)
        self._do()

    def settle(self) -> None:
        self._timer.stop()
        if self._is_wanted:
            self._is_wanted = False
            self._do()

    def close(self) -> None:
        """Do nothing any more of what was asked."""
        self._timer.stop()
        self._is_wanted = False
