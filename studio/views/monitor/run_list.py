"""All requests in flight, a row each. While the pointer is over them nothing moves under it. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QEnterEvent, QHideEvent
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from engine.api import EngineSnapshot
from studio.views.labels import line
from studio.views.monitor.run_row import RunRow
from studio.views.run_sentences import Others
from studio.views.theme import Theme
from studio.views.words import tr


class RunList(QScrollArea):
    """`rows` by request id, in the order in which they came; `steer_wanted` carries such an id and the Steer."""

    steer_wanted = Signal(str, object)
    pointed = Signal(bool)
    """The pointer has come over the list, or has left it."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.rows: dict[str, RunRow] = {}
        self.is_pointed = False
        self._theme = theme
        self._ended: set[str] = set()
        """Ids of rows that stand only because the pointer is over the list."""
        self._nothing = line("", "secondary", self)
        self._nothing.setText(
            tr(
                "Nothing runs. Chats and requests of programs appear here, with who holds which part of the pool, who "
                "waits for whom, and what can be done about it."
            )
        )
        self._page = page = QWidget(self)
        page.setObjectName("runsPage")
        self._list = QVBoxLayout()
        self._list.setSpacing(4)
        inner = QVBoxLayout(page)
        inner.setContentsMargins(0, 0, 8, 0)
        inner.addWidget(self._nothing)
        inner.addLayout(self._list)
        inner.addStretch(1)
        self.setObjectName("runs")
        self.setAccessibleName(tr("Requests in flight"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the rows' buttons take it
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(page)

    @property
    def wanted_px(self) -> int:
        """How high it is with all rows, or the words instead of them, in sight."""
        layout = self._page.layout()
        assert layout is not None
        width = self.viewport().width()
        high = layout.totalHeightForWidth(width) if layout.hasHeightForWidth() else 0
        return max(high, self._page.sizeHint().height(), self.minimumSizeHint().height())

    def show_runs(self, snapshot: EngineSnapshot, others: Others) -> None:
        """Show who is in flight now; those who are not any more go, once the pointer is elsewhere."""
        alive = {run.request_id for run in snapshot.runs}
        for request_id in self.rows.keys() - alive - self._ended:
            self.rows[request_id].show_ended()
            self._ended.add(request_id)
        self._ended -= alive
        if not self.is_pointed:
            self._remove_ended()
        for run in snapshot.runs:
            row = self.rows.get(run.request_id) or self._add_row(run.request_id)
            row.show_run(run, others)
        self._nothing.setVisible(not self.rows)
        self._settle()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._point(is_pointed=True)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._point(is_pointed=False)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._point(is_pointed=False)

    def _point(self, *, is_pointed: bool) -> None:
        self.is_pointed = is_pointed
        if not is_pointed:
            self._remove_ended()
            self._nothing.setVisible(not self.rows)
            self._settle()
        self.pointed.emit(is_pointed)

    def _remove_ended(self) -> None:
        ended, self._ended = self._ended, set()
        for request_id in ended:
            row = self.rows.pop(request_id)
            self._list.removeWidget(row)
            row.hide()  # under the pointer that is another leaving, and comes back here
            row.deleteLater()

    def _settle(self) -> None:
        """Give the rows their places now: left to the loop, they are drawn once where they are not."""
        for widget in (*self.rows.values(), self._page):
            if (layout := widget.layout()) is not None:
                layout.activate()

    def _add_row(self, request_id: str) -> RunRow:
        row = RunRow(request_id, self._theme, self)
        row.steer_wanted.connect(self.steer_wanted)
        self._list.addWidget(row)
        self.rows[request_id] = row
        return row
