"""Asks for a file or a folder, in the program's language where Qt's own dialog would take the system's. GUI thread.

A desktop that has a dialog of its own shows that, and speaks as it always does.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QIdentityProxyModel,
    QLocale,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
)
from PySide6.QtWidgets import QFileDialog, QFileSystemModel, QWidget

from studio.views.words import file_size, locale

_SIZE, _CHANGED = 1, 3
"""Columns of the list."""


def file_dialog(parent: QWidget, title: str) -> QFileDialog:
    """One that is to be set up and opened; it is gone when it is closed."""
    dialog = QFileDialog(parent, title)
    dialog.setProxyModel(_Spoken(dialog))
    dialog.finished.connect(dialog.deleteLater)
    return dialog


class _Spoken(QIdentityProxyModel):
    """Sizes and dates as the program writes them; Qt's model asks the system how."""

    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        files = self.sourceModel()
        if role != Qt.ItemDataRole.DisplayRole or not isinstance(files, QFileSystemModel):
            return super().data(index, role)
        there = self.mapToSource(index)
        if index.column() == _SIZE and not files.isDir(there):
            return file_size(files.size(there))
        if index.column() == _CHANGED:
            moment = files.lastModified(there)
            return locale().toString(moment, QLocale.FormatType.ShortFormat)
        return super().data(index, role)
