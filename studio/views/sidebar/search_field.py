"""The field to search chats with. GUI thread. Must not import services."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QToolButton, QWidget

from studio.views.icons import palette_icon
from studio.views.words import tr


class SearchField(QLineEdit):
    """Escape empties it, Down leaves it for the list."""

    down_pressed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("search")
        self._glass = self.addAction(
            palette_icon("search", self.palette()), QLineEdit.ActionPosition.LeadingPosition
        )
        self.setPlaceholderText(tr("Search names and messages"))
        self.setAccessibleName(tr("Search chats"))
        self.setClearButtonEnabled(True)
        for button in self.findChildren(QToolButton):
            button.setAccessibleName(tr("Search"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif event.key() == Qt.Key.Key_Down:
            self.down_pressed.emit()
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._glass.setIcon(palette_icon("search", self.palette()))
