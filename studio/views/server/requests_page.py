"""The page of requests: a table of the newest thousand, those under way with their state. GUI thread.

It looks four times a second, and only while it is seen.
"""

from __future__ import annotations

from PySide6.QtCore import QModelIndex
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QWidget

from studio.views.context import Context
from studio.views.labels import line
from studio.views.paged_dialog import page_column
from studio.views.server.requests_model import RequestsModel
from studio.views.server.requests_table import RequestsTable
from studio.views.words import tr

_DETAIL_SHARE = 0.28
_MOST_DETAIL_PX = 120


class RequestsPage(QWidget):
    """`table` shows `model`; `detail` tells all about the row that is chosen."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._log = context.services.server.log
        self._is_followed = False
        self.model = RequestsModel()
        title = QLabel(tr("Requests"), self)
        title.setObjectName("heading")
        self.clear = QPushButton(tr("Clear"), self)
        self.clear.setAutoDefault(False)
        self.clear.clicked.connect(self._clear)
        head = QHBoxLayout()
        head.addWidget(title)
        head.addStretch(1)
        head.addWidget(self.clear)
        self._empty = line(
            tr(
                "No program has asked for anything yet. Under “Connect” stands what to paste into yours. "
                "Their prompts are kept only if “Show prompts of requests” is on, under “Server”."
            ),
            "secondary",
            self,
        )
        self.table = RequestsTable(self.model, context.theme, self)
        self.table.selectionModel().currentRowChanged.connect(self._show_detail)
        self.detail = QPlainTextEdit(self)
        self.detail.setObjectName("detail")
        self.detail.setReadOnly(True)
        self.detail.setAccessibleName(tr("About the request"))
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.detail.setFixedHeight(min(_MOST_DETAIL_PX, round(_DETAIL_SHARE * self.height())))

    def refresh(self) -> None:
        """Show the log as it is now."""
        rows = self._log.rows
        self.model.refresh(rows, self._context.watch.snapshot.runs)
        self._empty.setVisible(not rows)
        self.table.setVisible(bool(rows))
        self.clear.setEnabled(any(row.is_over for row in rows))
        self._show_detail()

    def _show_detail(self) -> None:
        text = self.model.detail(self.table.currentIndex())
        if text != self.detail.toPlainText():
            place = self.detail.verticalScrollBar().value()
            self.detail.setPlainText(text)
            self.detail.verticalScrollBar().setValue(place)
        self.detail.setVisible(bool(text))

    def _clear(self) -> None:
        self._log.clear()
        self.table.setCurrentIndex(QModelIndex())
        self.refresh()

    def _follow(self, *, is_on: bool) -> None:
        if is_on and not self._is_followed:
            self._context.watch.ticked.connect(self.refresh)
        elif not is_on and self._is_followed:
            self._context.watch.ticked.disconnect(self.refresh)
        self._is_followed = is_on
