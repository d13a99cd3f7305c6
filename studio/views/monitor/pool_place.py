"""Where the pool panel stands: beside the panes, or below them where they would become too narrow. GUI thread."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout

from studio.views.monitor.pool_panel import WIDTH_PX, PoolPanel
from studio.views.panes import PaneArea

_LEAST_PANE_PX = 420
"""So wide at least is each of several panes, or the panel goes below: prose in less is a column of a few words."""


class PoolPlace:
    """`beside` is the layout for the right of the panes; `centre` the column that they stand in."""

    def __init__(self, panel: PoolPanel, panes: PaneArea, centre: QVBoxLayout) -> None:
        self.beside = QHBoxLayout()
        self.beside.addWidget(panel)
        self._panel = panel
        self._panes = panes
        self._centre = centre
        self._is_below = False

    def choose(self) -> None:
        """Look at the room there is, and move the panel if it should stand elsewhere."""
        num_panes = len(self._panes.panes)
        takes = self._panel.isVisible() and not self._is_below
        room_px = self._panes.width() + (WIDTH_PX if takes else 0) - WIDTH_PX
        is_below = num_panes > 1 and room_px < num_panes * _LEAST_PANE_PX
        if is_below == self._is_below:
            return
        self._is_below = is_below
        if is_below:
            self.beside.removeWidget(self._panel)
            self._centre.addWidget(self._panel)
        else:
            self._centre.removeWidget(self._panel)
            self.beside.addWidget(self._panel)
        self._panel.set_below(is_below=is_below)
