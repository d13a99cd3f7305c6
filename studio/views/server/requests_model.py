"""The rows of requests as a table: the log's rows, with what the engine says of those under way. GUI thread.

Refreshed a few times a second while it is seen: a thousand rows cost a comparison, only changed ones a repaint.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from enum import IntEnum

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt

from engine.runs import Run, RunState
from studio.models.request_log import RequestRow, RequestState
from studio.models.run_words import state_words
from studio.views.words import count, seconds, tr

_Index = QModelIndex | QPersistentModelIndex


class Column(IntEnum):
    """The columns in their order."""

    TIME = 0
    CLIENT = 1
    REQUEST = 2
    STATE = 3
    TOKENS = 4
    SECONDS = 5


class RequestsModel(QAbstractTableModel):
    """The newest request is on top."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._rows: tuple[RequestRow, ...] = ()
        self._runs: dict[str, Run] = {}

    def refresh(self, rows: tuple[RequestRow, ...], runs: tuple[Run, ...]) -> None:
        """Show these. The engine's runs tell the state and tokens of the rows under way."""
        newest_first = rows[::-1]
        self._runs = {run.request_id: run for run in runs}
        old_ids = [row.row_id for row in self._rows]
        if [row.row_id for row in newest_first] != old_ids:
            self.beginResetModel()
            self._rows = newest_first
            self.endResetModel()
            return
        before, self._rows = self._rows, newest_first
        for place, row in enumerate(newest_first):
            if row is not before[place] or not row.is_over:
                self.dataChanged.emit(
                    self.index(place, Column.STATE), self.index(place, Column.SECONDS)
                )

    def row_at(self, index: _Index) -> RequestRow | None:
        return self._rows[index.row()] if index.isValid() else None

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
        words = (tr("Time"), tr("Client"), tr("Request"), tr("State"), tr("Tokens"), tr("Seconds"))
        return words[section]

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(row, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.error or row.prompt or None
        if role == Qt.ItemDataRole.TextAlignmentRole and column >= Column.TOKENS:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return None

    def _text(self, row: RequestRow, column: Column) -> str:
        match column:
            case Column.TIME:
                return f"{datetime.fromtimestamp(row.started_s):%H:%M:%S}"
            case Column.CLIENT:
                return row.client
            case Column.REQUEST:
                return f"{row.method} {row.path}"
            case Column.STATE:
                return row_state_words(row, self._runs_of(row))
            case Column.TOKENS:
                return _token_words(row, self._runs_of(row))
            case Column.SECONDS:
                end_s = row.ended_s if row.ended_s is not None else self._clock()
                return seconds(max(0.0, end_s - row.started_s))

    def _runs_of(self, row: RequestRow) -> tuple[Run, ...]:
        if row.is_over:
            return ()
        return tuple(self._runs[run] for run in row.run_ids if run in self._runs)


def row_state_words(row: RequestRow, runs: tuple[Run, ...]) -> str:
    """Where a request is: that of its most advanced choice, while it is under way."""
    if row.is_over:
        return _ended_words(row)
    if row.state is RequestState.HELD_BACK:
        return tr("Queued: its key holds its share of the pool")
    order = (RunState.WRITING, RunState.READING, RunState.BEING_RESTORED, RunState.BEING_PARKED)
    for state in (*order, RunState.PARKED, RunState.QUEUED):
        if any(run.state is state for run in runs):
            return tr(state_words(state))
    return tr("Running")


def _ended_words(row: RequestRow) -> str:
    if row.state is RequestState.LEFT:
        return tr("The client left")
    if row.state is RequestState.REFUSED:
        return tr("Failed · {status}").format(status=row.status)
    if row.parked_s >= 0.05:
        return tr("Done · parked for {time}").format(time=seconds(row.parked_s))
    return tr("Done")


def _token_words(row: RequestRow, runs: tuple[Run, ...]) -> str:
    prompt, reply = row.prompt_tokens, row.completion_tokens
    if runs:
        prompt = max(run.prompt_tokens for run in runs)
        reply += sum(run.completion_tokens for run in runs)
    return f"{count(prompt)} + {count(reply)}" if prompt or reply else ""
