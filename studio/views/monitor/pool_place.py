"""Where the pool panel stands: beside the panes; below or over them where they would become too narrow. GUI thread."""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from studio.views.monitor.pool_panel import WIDTH_PX, PoolPanel
from studio.views.panes import LEAST_PANE_PX, PaneArea

_LEAST_PANE_PX = 420
"""So wide at least is each of several panes, or the panel goes below: prose in less is a column of a few words."""
_LEAST_PAGE_PX = 540
"""So high at least is all that is in the window, or there is no room below the panes."""
_LEAST_OVER_PX = 300


class _Spot(Enum):
    BESIDE = "beside"
    BELOW = "below"
    OVER = "over"
    """On top of panes that are left no room on a small screen; they come to light again when it is closed."""


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
        self._spot = _Spot.BESIDE

    def choose(self) -> None:
        """Look at the room there is, and move the panel if it should stand elsewhere."""
        if (page := self._panes.parentWidget()) is None:
            return
        spot = self._best(page)
        if spot is not self._spot:
            self._move(spot, page)
        if spot is _Spot.OVER:
            width = max(_LEAST_OVER_PX, min(WIDTH_PX, self._panes.panes[-1].width()))
            self._panel.setFixedWidth(width)
            top, height = self.beside.y(), self.beside.height()
            self._panel.setGeometry(page.width() - width, top, width, height)

    def _best(self, page: QWidget) -> _Spot:
        num_panes = len(self._panes.panes)
        # From where the panes begin, not from how wide they are: what was just shown has not taken its room yet.
        room_px = page.width() - self._panes.mapTo(page, QPoint()).x() - WIDTH_PX
        if num_panes == 1 or room_px >= num_panes * _LEAST_PANE_PX or not self._above.isHidden():
            return _Spot.BESIDE  # under what stands above it, the panel takes no width of its own
        if page.height() >= _LEAST_PAGE_PX:
            return _Spot.BELOW
        return _Spot.BESIDE if room_px >= num_panes * LEAST_PANE_PX else _Spot.OVER

    def _move(self, spot: _Spot, page: QWidget) -> None:
        self._spot = spot
        was_shown = not self._panel.isHidden()
        self._centre.removeWidget(self._panel)
        match spot:
            case _Spot.BESIDE:
                self.beside.addWidget(self._panel)
            case _Spot.BELOW:
                self._centre.addWidget(self._panel)
            case _Spot.OVER:
                self._panel.setParent(page)
                self._panel.raise_()
        self._panel.set_below(is_below=spot is _Spot.BELOW)
        self._panel.setVisible(was_shown)  # another parent hides it
