"""Where the pool panel stands: beside the panes, or below them where they would become too narrow. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from studio.views.monitor.pool_panel import WIDTH_PX, PoolPanel
from studio.views.panes import PaneArea

_LEAST_PANE_PX = 420
"""So wide at least is each of several panes, or the panel goes below: prose in less is a column of a few words."""


class PoolPlace:
    """`beside` stands at the right of the panes, `above` on top in it; `centre` is the column that the panes are in."""

    def __init__(
        self, panel: PoolPanel, panes: PaneArea, centre: QVBoxLayout, *, above: QWidget
    ) -> None:
        self.beside = QSplitter(Qt.Orientation.Vertical)
        self.beside.setHandleWidth(1)
        self.beside.addWidget(above)
        self.beside.addWidget(panel)
        self._above = above
        self._panel = panel
        self._panes = panes
        self._centre = centre
        self._is_below = False

    def choose(self) -> None:
        """Look at the room there is, and move the panel if it should stand elsewhere."""
        num_panes = len(self._panes.panes)
        if (page := self._panes.parentWidget()) is None:
            return
        # From where the panes begin, not from how wide they are: what was just shown has not taken its room yet.
        room_px = page.width() - self._panes.mapTo(page, QPoint()).x() - WIDTH_PX
        is_below = num_panes > 1 and room_px < num_panes * _LEAST_PANE_PX
        if (
            not self._above.isHidden()
        ):  # then the panel stands below it and takes no width of its own
            is_below = False
        if is_below == self._is_below:
            return
        self._is_below = is_below
        was_shown = not self._panel.isHidden()
        if is_below:
            self._centre.addWidget(self._panel)
        else:
            self._centre.removeWidget(self._panel)
            self.beside.addWidget(self._panel)
        self._panel.set_below(is_below=is_below)
        self._panel.setVisible(was_shown)  # another parent hides it
