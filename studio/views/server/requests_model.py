"""The rows of requests as a table: the log's rows, with what the engine says of those under way. GUI thread.

Refreshed a few times a second while it is seen: a thousand rows cost a comparison, only changed ones a repaint.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from engine.runs import Run
from studio.models.request_log import RequestRow
from studio.views.server.request_words import (
    describe_request,
    detail_words,
    duration_words,
    request_words,
    time_words,
    token_words,
)
from studio.views.words import tr

_Index = QModelIndex | QPersistentModelIndex


class Column(IntEnum):
    """The columns in their order."""

    TIME = 0
    CLIENT = 1
    REQUEST = 2
    STATE = 3
    TOKENS = 4
    DURATION = 5


STATE_ROLE = Qt.ItemDataRole.UserRole
"""The StatusWords of a row's state."""
_MAY_BE_CUT = frozenset({Column.CLIENT, Column.REQUEST, Column.STATE})


class RequestsModel(QAbstractTableModel):
    """The newest request is on top."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._rows: tuple[RequestRow, ...] = ()
        self._runs: dict[str, Run] = {}

    def refresh(self, rows: tuple[RequestRow, ...], runs: tuple[Run, ...]) -> None:
        """Show these. The engine's runs tell the state and tokens of the rows under way."""
        self._runs = {run.request_id: run for run in runs}
        before = {row.row_id: row for row in self._rows}
        self._take(rows[::-1])
        for place, row in enumerate(self._rows):
            if row is not before.get(row.row_id) or not row.is_over:
                self.dataChanged.emit(
                    self.index(place, Column.STATE), self.index(place, Column.DURATION)
                )

    def _take(self, rows: tuple[RequestRow, ...]) -> None:
        """New rows come on top and old ones go at the end, so that a chosen one stays chosen."""
        newest_id = self._rows[0].row_id if self._rows else 0
        num_new = sum(row.row_id > newest_id for row in rows)
        num_left = len(rows) - num_new
        if any(a.row_id != b.row_id for a, b in zip(rows[num_new:], self._rows, strict=False)):
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
            return
        if num_left < len(self._rows):
            self.beginRemoveRows(QModelIndex(), num_left, len(self._rows) - 1)
            self._rows = self._rows[:num_left]
            self.endRemoveRows()
        if num_new:
            self.beginInsertRows(QModelIndex(), 0, num_new - 1)
            self._rows = rows
            self.endInsertRows()
        self._rows = rows

    def row_at(self, index: _Index) -> RequestRow | None:
        return self._rows[index.row()] if index.isValid() else None

    def detail(self, index: _Index) -> str:
        """All that is known of a row."""
        row = self.row_at(index)
        return detail_words(row, self._runs_of(row), self._clock()) if row is not None else ""

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(Column)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> object:
        if orientation is not Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and section >= Column.TOKENS:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        words = (tr("Time"), tr("Client"), tr("Request"), tr("State"), tr("Tokens"), tr("Duration"))
        return words[section]

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, column)
        if role == STATE_ROLE:
            return describe_request(row, self._runs_of(row))
        if role == Qt.ItemDataRole.ToolTipRole:
            words = self._text(row, column) if column in _MAY_BE_CUT else ""
            return "\n".join(text for text in (words, row.error or row.prompt) if text) or None
        if role == Qt.ItemDataRole.TextAlignmentRole and column >= Column.TOKENS:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return None

    def _text(self, row: RequestRow, column: Column) -> str:
        match column:
            case Column.TIME:
                return time_words(row)
            case Column.CLIENT:
                return row.client
            case Column.REQUEST:
                return request_words(row)
            case Column.STATE:
                return describe_request(row, self._runs_of(row)).text
            case Column.TOKENS:
                return token_words(row, self._runs_of(row))
            case Column.DURATION:
                return duration_words(row, self._clock())

    def _runs_of(self, row: RequestRow) -> tuple[Run, ...]:
        if row.is_over:
            return ()
        return tuple(self._runs[run] for run in row.run_ids if run in self._runs)
