"""The one beat by which everything that moves on screen moves. GUI thread; must not import services.

Each picture of a window is one pass over all that has to be drawn anew in it: marks that moved by clocks of their own
would cost a pass each.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

BEAT_MS = 100


class Pulse(QObject):
    """Has the widgets that move drawn anew with every beat; it stands still while there are none."""

    def __init__(self) -> None:
        super().__init__()
        self._moving: dict[QWidget, None] = {}
        self._timer = QTimer(self)
        self._timer.setInterval(BEAT_MS)
        self._timer.timeout.connect(self._beat)

    @property
    def is_beating(self) -> bool:
        return self._timer.isActive()

    def move(self, widget: QWidget) -> None:
        """Draw `widget` anew with every beat, until `rest`."""
        self._moving[widget] = None
        if not self._timer.isActive():
            self._timer.start()

    def rest(self, widget: QWidget) -> None:
        """It stands still from now on. Call it when the widget is hidden, too; one that is deleted rests."""
        self._moving.pop(widget, None)
        if not self._moving:
            self._timer.stop()

    def _beat(self) -> None:
        for widget in tuple(self._moving):
            if isValid(widget):
                widget.update()
            else:  # it went while it was seen, and nobody told it
                self.rest(widget)
