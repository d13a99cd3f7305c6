"""Where the pool panel and a chat's settings stand: beside the panes; where those would become too narrow the panel
goes below them, or both go over them. GUI thread.

The window may be made as narrow as it is without the two, which give way then. What lies over the panes covers them
until it is closed, or there is room again.
"""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtWidgets import QHBoxLayout, QSpacerItem, QSplitter, QVBoxLayout, QWidget

from studio.views.monitor.pool_panel import WIDTH_PX, PoolPanel
from studio.views.panes import LEAST_PANE_PX, PaneArea

_LEAST_PANE_PX = 420
"""So wide at least is each of several panes, or the panel goes below: prose in less is a column of a few words."""
_LEAST_PAGE_PX = 540
"""So high at least is all that is in the window, or there is no room below the panes."""
_LEAST_OVER_PX = 300
_STRIP_PX = 80


class _Spot(Enum):
    BESIDE = "beside"
    BELOW = "below"
    OVER = "over"


class PoolPlace(QObject):
    """`watch` the page once all is in it: `row` has a column at its end for the two, `centre` the panes."""

    def __init__(
        self,
        panel: PoolPanel,
        panes: PaneArea,
        *,
        above: QWidget,
        row: QHBoxLayout,
        centre: QVBoxLayout,
    ) -> None:
        """`above` has its place on top of the panel."""
        super().__init__(panes)
        self._column = QSplitter(Qt.Orientation.Vertical)
        self._column.setHandleWidth(1)
        self._column.addWidget(above)
        self._column.addWidget(panel)
        row.addWidget(self._column)
        self._strut = QSpacerItem(0, 0)
        """Keeps the row as high as what lies over it needs."""
        row.addSpacerItem(self._strut)
        self._above = above
        self._panel = panel
        self._panes = panes
        self._row = row
        self._centre = centre
        self._spot = _Spot.BESIDE
        self._page: QWidget | None = None
        self._foot: QWidget = self._column

    def watch(self, page: QWidget, *, foot: QWidget) -> None:
        """Look after them in this page from now on, which has the row and, as wide as that, a foot."""
        self._page, self._foot = page, foot
        page.installEventFilter(self)
        self._column.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.LayoutRequest, QEvent.Type.Resize):
            self.choose()
        return super().eventFilter(watched, event)

    def choose(self) -> None:
        """Look at the room there is, and move them if they should stand elsewhere."""
        if (page := self._page) is None:
            return
        spot = self._best(page)
        if spot is not self._spot:
            self._move(spot)
        page.window().setMinimumWidth(max(self._row_px, self._foot.minimumSizeHint().width()))
        if spot is _Spot.OVER:
            self._spread(page)

    def _best(self, page: QWidget) -> _Spot:
        num_panes, has_above = len(self._panes.panes), not self._above.isHidden()
        is_above_alone = has_above and self._panel.isHidden()
        own_px = self._above.minimumWidth() if is_above_alone else WIDTH_PX
        fits = page.width() >= self._row_px + own_px
        # Under what stands above it, the panel takes no width of its own.
        if num_panes == 1 or has_above:
            return _Spot.BESIDE if fits or self._is_empty else _Spot.OVER
        # From where the panes begin, not from how wide they are: what was just shown has not taken its room yet.
        room_px = page.width() - self._panes.mapTo(page, QPoint()).x() - WIDTH_PX
        if room_px >= num_panes * _LEAST_PANE_PX:
            return _Spot.BESIDE
        if page.height() >= _LEAST_PAGE_PX:
            return _Spot.BELOW
        return _Spot.BESIDE if fits and room_px >= num_panes * LEAST_PANE_PX else _Spot.OVER

    @property
    def _is_empty(self) -> bool:
        return self._above.isHidden() and self._panel.isHidden()

    @property
    def _row_px(self) -> int:
        """How narrow the row may become where none of this stands in it."""
        items = (self._row.itemAt(place) for place in range(self._row.count()))
        others = (one for one in items if one is not None and one.widget() is not self._column)
        return sum(one.minimumSize().width() for one in others)

    def _move(self, spot: _Spot) -> None:
        self._spot = spot
        was_shown = not self._panel.isHidden()
        if spot is _Spot.OVER:
            self._row.removeWidget(self._column)
            self._column.raise_()
        elif self._row.indexOf(self._column) < 0:
            self._row.addWidget(self._column)
            self._strut.changeSize(0, 0)
        self._centre.removeWidget(self._panel)
        if spot is _Spot.BELOW:
            self._centre.addWidget(self._panel)
        else:
            self._column.addWidget(self._panel)
        self._panel.set_below(is_below=spot is _Spot.BELOW)
        self._panel.setVisible(was_shown)  # another parent hides it

    def _spread(self, page: QWidget) -> None:
        """At the right of the page, over the last of the panes; nowhere while there is nothing to see."""
        width, pane_px = WIDTH_PX, self._panes.panes[-1].width()
        if pane_px < WIDTH_PX + _STRIP_PX:
            width = max(_LEAST_OVER_PX, pane_px)  # all of it: what is left would be of no use
        if not self._above.isHidden():
            width = max(width, self._above.minimumWidth())
        self._panel.setFixedWidth(width)
        least_px = self._column.minimumSizeHint().height()
        if least_px != self._strut.minimumSize().height():
            self._strut.changeSize(0, least_px)
            self._row.invalidate()
            if (layout := page.layout()) is not None:
                layout.activate()
        height = self._row.geometry().height()
        self._column.setGeometry(page.width() - width, 0, 0 if self._is_empty else width, height)
