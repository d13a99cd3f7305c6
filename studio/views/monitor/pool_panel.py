"""The pool panel: who holds the pool, what is parked in memory, all requests in flight and their buttons. GUI thread.

Drawn when the window's watch has looked, at most four times a second; hidden, it looks at nothing.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from engine.api import EngineSnapshot
from studio.views.context import Context
from studio.views.icon_button import IconButton
from studio.views.monitor.pool_bar import describe_pool
from studio.views.monitor.pool_map import Piece, PoolMap, park_words, pieces_of
from studio.views.monitor.run_row import RunRow
from studio.views.monitor.status_line import pool_words
from studio.views.run_sentences import Others
from studio.views.words import tr

WIDTH_PX = 340
_SIDE_PX = 16


class PoolPanel(QWidget):
    """Hidden until it is asked for."""

    close_wanted = Signal()

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("poolPanel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(WIDTH_PX)
        self.hide()
        self._context = context
        self.rows: dict[str, RunRow] = {}
        self._map = PoolMap(tr("Pool by chat"), context.theme, self)
        self._pool = _secondary(self)
        self._parked = PoolMap(tr("Memory of parked chats"), context.theme, self)
        self._parks = _secondary(self)
        self._nothing = _secondary(self)
        self._nothing.setText(tr("Nothing runs. Chats and requests of programs appear here."))
        self._list = QVBoxLayout()
        self._list.setSpacing(4)
        self._lay_out()
        context.watch.ticked.connect(self._refresh)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._refresh()

    def _refresh(self) -> None:
        if not self.isVisible():
            return
        snapshot, others = self._context.watch.snapshot, self._context.watch.others
        self._map.show_pieces(pieces_of(snapshot, others), describe_pool(snapshot.pool))
        self._pool.setText(pool_words(snapshot.pool).capitalize())
        parks = snapshot.parks
        share = min(1.0, parks.used_bytes / parks.budget_bytes) if parks.budget_bytes > 0 else 0.0
        self._parked.show_pieces((Piece(share, None),), park_words(parks))
        self._parks.setText(park_words(parks))
        self._show_runs(snapshot, others)

    def _show_runs(self, snapshot: EngineSnapshot, others: Others) -> None:
        alive = {run.request_id for run in snapshot.runs}
        for request_id in self.rows.keys() - alive:
            row = self.rows.pop(request_id)
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        for run in snapshot.runs:
            row = self.rows.get(run.request_id) or self._add_row(run.request_id)
            row.show_run(run, others)
        self._nothing.setVisible(not self.rows)

    def _add_row(self, request_id: str) -> RunRow:
        row = RunRow(request_id, self._context.theme, self)
        row.steer_wanted.connect(self._context.services.runs.steer)
        self._list.addWidget(row)
        self.rows[request_id] = row
        return row

    def _lay_out(self) -> None:
        title = QLabel(tr("Pool"), self)
        title.setObjectName("title")
        close = IconButton("close", tr("Close the pool panel"), self)
        close.setObjectName("small")
        close.clicked.connect(self.close_wanted)
        head = QHBoxLayout()
        head.addWidget(title, 1)
        head.addWidget(close)
        page = QWidget(self)
        page.setObjectName("runsPage")
        inner = QVBoxLayout(page)
        inner.setContentsMargins(0, 0, 8, 0)
        inner.addWidget(self._nothing)
        inner.addLayout(self._list)
        inner.addStretch(1)
        area = QScrollArea(self)
        area.setObjectName("runs")
        area.setAccessibleName(tr("Requests in flight"))
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(_SIDE_PX, 8, 8, 8)
        layout.setSpacing(6)
        layout.addLayout(head)
        figures = QVBoxLayout()
        figures.setContentsMargins(0, 0, _SIDE_PX - 8, 0)
        for widget in (self._map, self._pool, self._parked, self._parks):
            figures.addWidget(widget)
        layout.addLayout(figures)
        layout.addSpacing(6)
        layout.addWidget(area, 1)


def _secondary(parent: QWidget) -> QLabel:
    label = QLabel(parent)
    label.setObjectName("secondary")
    label.setWordWrap(True)
    return label
