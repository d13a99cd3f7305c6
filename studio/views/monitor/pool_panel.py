"""The pool panel: who holds the pool, what is parked in memory, all requests in flight and their buttons. GUI thread.

At the window's side, or below where panes beside each other need the width. What has colours is drawn at most ten times
a second, words and the timeline four times; hidden, it looks at nothing.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)

from studio.views.context import Context
from studio.views.icon_button import IconButton
from studio.views.monitor.pool_figures import PoolFigures
from studio.views.monitor.pool_history import PoolHistory
from studio.views.monitor.run_list import RunList
from studio.views.monitor.run_row import RunRow
from studio.views.words import tr

WIDTH_PX = 340
BELOW_PX = 264
_SIDE_PX = 16
_HEAD_PX = 60
"""The panel's own title and margins."""
_GAP_PX = 12
"""Between its three parts."""
_LEAST_LIST_PX = 200
_LEAST_HISTORY_PX = 150
_LANES_BESIDE = 6
_LANES_BELOW = 5
_MOST_PX = (1 << 24) - 1


class PoolPanel(QWidget):
    """Hidden until it is asked for. `chosen` carries the id of a request whose pages were clicked."""

    close_wanted = Signal()
    chosen = Signal(str)

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("poolPanel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.hide()
        self._context = context
        self._is_below = False
        self.figures = PoolFigures(context, self)
        self.figures.chosen.connect(self.chosen)
        self.history = PoolHistory(context, self)
        self.runs = RunList(context.theme, self)
        self.runs.steer_wanted.connect(context.services.runs.steer)
        self.runs.pointed.connect(self._hold)
        self._body = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._left = QVBoxLayout()
        self._lay_out()
        self.set_below(is_below=False)
        context.watch.moved.connect(self._draw)
        context.watch.ticked.connect(self._refresh)

    def set_below(self, *, is_below: bool) -> None:
        """Stand below the panes, wide and low, instead of beside them."""
        way = QBoxLayout.Direction
        self._body.setDirection(way.LeftToRight if is_below else way.TopToBottom)
        self._body.setStretch(0, 1 if is_below else 0)
        self._body.setStretch(1, 1)
        self.setProperty("below", is_below)
        self.style().unpolish(self)
        self.style().polish(self)
        self.setMinimumSize(0 if is_below else WIDTH_PX, BELOW_PX if is_below else 0)
        self.setMaximumSize(_MOST_PX if is_below else WIDTH_PX, BELOW_PX if is_below else _MOST_PX)
        self._body.setStretch(2, 1 if is_below else 0)
        self._is_below = is_below
        self._give_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._give_room()
        self._refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._draw()
        self._refresh()

    @property
    def _figures_width_px(self) -> int:
        return self.figures.width() if self._is_below else self.maximumWidth() - 2 * _SIDE_PX

    def _give_room(self) -> None:
        """The history gets what the figures and the requests leave; where these are many, room for its lanes."""
        figures_px = self.figures.fit_height(self._figures_width_px)
        room_px = self.height() - _HEAD_PX
        if not self._is_below:
            room_px -= figures_px + 2 * _GAP_PX
            most_px = max(room_px - _LEAST_HISTORY_PX, _LEAST_LIST_PX)
            room_px -= min(self.runs.wanted_px, most_px)
        lanes = _LANES_BELOW if self._is_below else _LANES_BESIDE
        self.history.set_room(room_px, most_lanes=lanes)

    def _draw(self) -> None:
        if self.isVisible():
            self.figures.show_pictures(self._context.watch.snapshot)

    def _refresh(self) -> None:
        if not self.isVisible():
            return
        snapshot = self._context.watch.snapshot
        self.figures.show_words(snapshot)
        if self.runs.is_pointed:
            self.figures.fit_height(self._figures_width_px, may_shrink=False)
        else:
            self._give_room()
        self.history.refresh()
        self.runs.show_runs(snapshot, self._context.watch.others)

    def _hold(self, is_pointed: bool) -> None:
        """What stands above the list grows no lower as long as the pointer is over the list."""
        if is_pointed:
            self.figures.setMinimumHeight(self.figures.height())
        else:
            self._give_room()

    @property
    def rows(self) -> dict[str, RunRow]:
        """Those of the requests, by id."""
        return self.runs.rows

    def _lay_out(self) -> None:
        title = QLabel(tr("Pool"), self)
        title.setObjectName("title")
        close = IconButton("close", tr("Close the pool panel"), self)
        close.setObjectName("small")
        close.clicked.connect(self.close_wanted)
        head = QHBoxLayout()
        head.addWidget(title, 1)
        head.addWidget(close)
        self._left.setContentsMargins(0, 0, _SIDE_PX - 8, 0)
        self._left.setSpacing(12)
        self._left.addWidget(self.figures)
        self._left.addStretch(1)
        history = QVBoxLayout()
        history.setContentsMargins(0, 0, 8, 0)
        history.addWidget(self.history)
        history.addStretch(1)
        self._body.setSpacing(_GAP_PX)
        self._body.addLayout(self._left)
        self._body.addWidget(self.runs)
        self._body.addLayout(history)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_SIDE_PX, 8, 8, 12)
        layout.setSpacing(6)
        layout.addLayout(head)
        layout.addLayout(self._body, 1)
