"""The page of requests: a table of the newest thousand, those under way with their state. GUI thread.

It looks four times a second, and only while it is seen.
"""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QTableView,
    QWidget,
)

from studio.models.request_log import RequestRow
from studio.views.context import Context
from studio.views.labels import line
from studio.views.paged_dialog import page_column
from studio.views.server.requests_model import Column, RequestsModel
from studio.views.words import tr

_WIDTHS = {
    Column.TIME: 84,
    Column.CLIENT: 112,
    Column.STATE: 176,
    Column.TOKENS: 104,
    Column.SECONDS: 76,
}


class RequestsPage(QWidget):
    """`table` shows `model`."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._log = context.services.server.log
        self._is_followed = False
        self.model = RequestsModel()
        title = QLabel(tr("Requests"), self)
        title.setObjectName("heading")
        clear = QPushButton(tr("Clear"), self)
        clear.setAutoDefault(False)
        clear.clicked.connect(self._clear)
        head = QHBoxLayout()
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(clear)
        self._empty = line(
            tr(
                "No program has asked for anything yet. Under “Connect” stands what to paste into yours. "
                "Prompts are not kept unless you switch that on."
            ),
            "secondary",
            self,
        )
        self.table = self._make_table()
        self.detail = QPlainTextEdit(self)
        self.detail.setObjectName("detail")
        self.detail.setReadOnly(True)
        self.detail.setAccessibleName(tr("About the request"))
        self.detail.setMaximumHeight(120)
        self.detail.hide()
        column = page_column(self)
        column.addLayout(head)
        column.addWidget(self._empty)
        column.addWidget(self.table, 1)
        column.addWidget(self.detail)
        column.addStretch(0)
        self.refresh()

    def close_page(self) -> None:
        """Look no longer."""
        self._follow(is_on=False)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._follow(is_on=True)
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._follow(is_on=False)

    def refresh(self) -> None:
        """Show the log as it is now."""
        rows = self._log.rows
        self.model.refresh(rows, self._context.watch.snapshot.runs)
        self._empty.setVisible(not rows)
        self.table.setVisible(bool(rows))

    def _make_table(self) -> QTableView:
        table = QTableView(self)
        table.setObjectName("requests")
        table.setAccessibleName(tr("Requests of programs"))
        table.setModel(self.model)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setTabKeyNavigation(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(28)
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(Column.REQUEST, QHeaderView.ResizeMode.Stretch)
        for column, width in _WIDTHS.items():
            header.resizeSection(column, width)
        table.selectionModel().currentRowChanged.connect(self._show_detail)
        return table

    def _show_detail(self, index: QModelIndex, _before: QModelIndex) -> None:
        row = self.model.row_at(index)
        text = detail_words(row) if row is not None else ""
        self.detail.setPlainText(text)
        self.detail.setVisible(bool(text))

    def _clear(self) -> None:
        self._log.clear()
        self.detail.hide()
        self.refresh()

    def _follow(self, *, is_on: bool) -> None:
        if is_on and not self._is_followed:
            self._context.watch.ticked.connect(self.refresh)
        elif not is_on and self._is_followed:
            self._context.watch.ticked.disconnect(self.refresh)
        self._is_followed = is_on


def detail_words(row: RequestRow) -> str:
    """What the table has no room for."""
    told = tr("The program was told: {error}").format(error=row.error) if row.error else ""
    lines = [told, row.prompt]
    if row.model:
        lines.insert(0, tr("Model: {model}").format(model=row.model))
    return "\n\n".join(text for text in lines if text)
