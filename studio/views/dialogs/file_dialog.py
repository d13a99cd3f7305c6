"""Asks for a file or a folder, in the program's language where Qt's own dialog would take the system's. GUI thread.

A desktop that has a dialog of its own shows that, and speaks as it always does.
"""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QEvent,
    QIdentityProxyModel,
    QLocale,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFileSystemModel,
    QHeaderView,
    QToolButton,
    QTreeView,
    QWidget,
)

from studio.views.icons import palette_icon
from studio.views.inputs import draw_list_arrow
from studio.views.words import locale, size

_NAME, _SIZE, _KIND, _CHANGED = 0, 1, 2, 3
"""Columns of the list."""
_ICONS = {
    "backButton": "chevron-left",
    "forwardButton": "chevron-right",
    "toParentButton": "chevron-up",
}
"""Of Qt's buttons those whose own icons are black, which cannot be seen on dark."""


def file_dialog(parent: QWidget, title: str) -> QFileDialog:
    """One that is to be set up and opened; it is gone when it is closed."""
    dialog = QFileDialog(parent, title)
    dialog.setProxyModel(_Spoken(dialog))
    if (details := dialog.findChild(QTreeView, "treeView")) is not None:  # Qt's own
        _share_out(details)
    for field in dialog.findChildren(QComboBox):
        _Arrow(field)
    for button in dialog.findChildren(QToolButton):
        if (icon_name := _ICONS.get(button.objectName())) is not None:
            _Sign(button, icon_name)
    dialog.finished.connect(dialog.deleteLater)
    return dialog


def _share_out(details: QTreeView) -> None:
    """Sizes and dates have their room, names have the rest; names tell the kind of a file."""
    header, mode = details.header(), QHeaderView.ResizeMode
    details.setColumnHidden(_KIND, True)
    for column in (_SIZE, _CHANGED):
        header.setSectionResizeMode(column, mode.ResizeToContents)
    header.setStretchLastSection(False)
    header.setSectionResizeMode(_NAME, mode.Stretch)


class _Arrow(QWidget):
    """Over a field of Qt's that opens a list, which otherwise looks like one to write in."""

    def __init__(self, field: QComboBox) -> None:
        super().__init__(field)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(watched, QComboBox) and event.type() == QEvent.Type.Resize:
            self.setGeometry(watched.rect())
        return False

    def paintEvent(self, _event: QPaintEvent) -> None:
        draw_list_arrow(self)


class _Sign(QObject):
    """One of our icons on a button of Qt's, in the colour of the palette."""

    def __init__(self, button: QToolButton, icon_name: str) -> None:
        super().__init__(button)
        self._icon_name = icon_name
        self._draw(button)
        button.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(watched, QToolButton) and event.type() == QEvent.Type.PaletteChange:
            self._draw(watched)
        return False

    def _draw(self, button: QToolButton) -> None:
        button.setIcon(palette_icon(self._icon_name, button.palette()))


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
            return size(files.size(there))
        if index.column() == _CHANGED:
            moment = files.lastModified(there)
            return locale().toString(moment, QLocale.FormatType.ShortFormat)
        return super().data(index, role)
