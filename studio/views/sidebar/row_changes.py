"""Brings a Qt list from old rows to new ones by as few removals, moves and insertions as are easily found. GUI thread.

Selection, scrolling and an open editor stay with their rows. Must not import services.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Protocol, TypeVar

from PySide6.QtCore import QAbstractListModel, QModelIndex


class Keyed(Protocol):
    """A row that is the same as another one with an equal key."""

    @property
    def key(self) -> tuple[str, object]: ...


_R = TypeVar("_R", bound=Keyed)


def apply_changes(model: QAbstractListModel, rows: list[_R], new: Sequence[_R]) -> None:
    """Make `rows`, which `model` shows, equal to `new`, telling the view of every step. Keys are unique.

    Rows that go or come side by side do so in one step: thousands may, and a view looks at all it has after each.
    """
    _remove_others(model, rows, {row.key for row in new})
    present = {row.key for row in rows}
    place = 0
    while place < len(new):
        row = new[place]
        if place < len(rows) and rows[place].key == row.key:
            if rows[place] != row:
                rows[place] = row
                model.dataChanged.emit(model.index(place), model.index(place))
        elif row.key in present:
            _move_up(model, rows, place, row)
        else:
            end = place + 1
            while end < len(new) and new[end].key not in present:
                end += 1
            model.beginInsertRows(QModelIndex(), place, end - 1)
            rows[place:place] = new[place:end]
            model.endInsertRows()
            place = end - 1
        place += 1


def _remove_others(
    model: QAbstractListModel, rows: list[_R], wanted: Set[tuple[str, object]]
) -> None:
    end = len(rows)
    while end:
        start = end
        while start and rows[start - 1].key not in wanted:
            start -= 1
        if start < end:
            model.beginRemoveRows(QModelIndex(), start, end - 1)
            del rows[start:end]
            model.endRemoveRows()
        end = max(start - 1, 0)


def _move_up(model: QAbstractListModel, rows: list[_R], place: int, row: _R) -> None:
    old = next(i for i in range(place, len(rows)) if rows[i].key == row.key)
    model.beginMoveRows(QModelIndex(), old, old, QModelIndex(), place)
    del rows[old]
    rows.insert(place, row)
    model.endMoveRows()
