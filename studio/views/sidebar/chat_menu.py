"""The menu of a chat in the list: rename, delete, show it in a pane of its own. GUI thread.

It only says what is wanted, with the chat that it was opened for.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QMenu, QWidget

from studio.models.chat import Conversation
from studio.views.words import tr


class ChatMenu(QMenu):
    """One for the whole list. Each signal carries the chat."""

    rename_wanted = Signal(object)
    delete_wanted = Signal(object)
    split_wanted = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._chat: Conversation | None = None
        rename = self.addAction(tr("Rename"))
        rename.triggered.connect(lambda: self.rename_wanted.emit(self._chat))
        self._split = self.addAction(tr("Split"))
        self._split.triggered.connect(lambda: self.split_wanted.emit(self._chat))
        self.addSeparator()
        delete = self.addAction(tr("Delete…"))
        delete.triggered.connect(lambda: self.delete_wanted.emit(self._chat))

    def set_can_split(self, *, can_split: bool) -> None:
        """Whether there is room for one more pane."""
        self._split.setEnabled(can_split)

    def open_for(self, chat: Conversation, spot: QPoint) -> None:
        """Open at a place on the screen."""
        self._chat = chat
        self.popup(spot)
