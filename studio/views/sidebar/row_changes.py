"""Brings a Qt list from old rows to new ones by as few removals, moves and insertions as are easily found. GUI thread.

Selection, scrolling and an open editor stay with their rows. Must not import services.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from PySide6.QtCore import QAbstractListModel, QModelIndex


class Keyed(Protocol):
    """A row that is the same as another one with an equal key."""

    @property
    def key(self) -> tuple[str, object]: ...


_R = TypeVar("_R", bound=Keyed)


def apply_changes(model: QAbstractListModel, rows: list[_R], new: Sequence[_R]) -> None:
    """Make `rows`, which `model` shows, equal to `new`, telling the view of every step. Keys are unique."""
    top = QModelIndex()
    wanted = {row.key for row in new}
    for place in range(len(rows) - 1, -1, -1):
        if rows[place].key not in wanted:
            model.beginRemoveRows(top, place, place)
            del rows[place]
            model.endRemoveRows()
    present = {row.key for row in rows}
    for place, row in enumerate(new):
        if place < len(rows) and rows[place].key == row.key:
            if rows[place] != row:
                rows[place] = row
                model.dataChanged.emit(model.index(place), model.index(place))
        elif row.key in present:
            old = next(i for i in range(place, len(rows)) if rows[i].key == row.key)
            model.beginMoveRows(top, old, old, top, place)
            del rows[old]
            rows.insert(place, row)
            model.endMoveRows()
        else:
            model.beginInsertRows(top, place, place)
            rows.insert(place, row)
            model.endInsertRows()
