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

    Rows that go or come side by side do so in one step, and so do all that change their order: thousands may, and a
    view looks at all it has after each step.
    """
    _remove_others(model, rows, {row.key for row in new})
    present = {row.key for row in rows}
    _reorder(model, rows, [row for row in new if row.key in present])
    place = 0
    while place < len(new):
        if new[place].key in present:
            if rows[place] != new[place]:
                rows[place] = new[place]
                model.dataChanged.emit(model.index(place), model.index(place))
            place += 1
            continue
        end = place + 1
        while end < len(new) and new[end].key not in present:
            end += 1
        model.beginInsertRows(QModelIndex(), place, end - 1)
        rows[place:place] = new[place:end]
        model.endInsertRows()
        place = end


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


def _reorder(model: QAbstractListModel, rows: list[_R], wanted: Sequence[_R]) -> None:
    """Bring the rows into the order of the same rows in `wanted`; the usual one that goes up alone is moved alone."""
    keys, order = [row.key for row in rows], [row.key for row in wanted]
    place = next((at for at, key in enumerate(order) if keys[at] != key), None)
    if place is None:
        return
    old = keys.index(order[place])
    if order == [*keys[:place], keys[old], *keys[place:old], *keys[old + 1 :]]:
        model.beginMoveRows(QModelIndex(), old, old, QModelIndex(), place)
        rows.insert(place, rows.pop(old))
        model.endMoveRows()
        return
    model.layoutAboutToBeChanged.emit()
    places = {key: at for at, key in enumerate(order)}
    before = model.persistentIndexList()
    after = [model.index(places[keys[index.row()]]) for index in before]
    rows.sort(key=lambda row: places[row.key])
    model.changePersistentIndexList(before, after)
    model.layoutChanged.emit()
