"""The chats as rows for the list: title, state in words, order of last use. GUI thread.

It follows the chat service's signals. A token of a running reply only marks its row; rows are told to be redrawn by the
figures' ticker, a few times a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import IntEnum

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from studio.models.chat import Conversation, Message
from studio.services.chat_service import ChatService
from studio.views.frame_ticker import FrameTicker
from studio.views.run_sentences import describe_row
from studio.views.run_watch import RunWatch
from studio.views.status_words import StatusWords, describe_chat
from studio.views.words import tr

_Index = QModelIndex | QPersistentModelIndex


class ChatRole(IntEnum):
    """What the delegate asks for beyond the title."""

    CHAT = Qt.ItemDataRole.UserRole + 1
    WORDS = Qt.ItemDataRole.UserRole + 2
    IS_OPEN = Qt.ItemDataRole.UserRole + 3
    """Shown in the pane that commands go to."""
    HUE = Qt.ItemDataRole.UserRole + 4
    """The number of its hue in the pool; None while it is not in flight."""


class ConversationModel(QAbstractListModel):
    """One row for each chat. Editing a title calls `rename`."""

    def __init__(
        self,
        chats: ChatService,
        watch: RunWatch,
        ticker: FrameTicker,
        *,
        rename: Callable[[Conversation, str], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._service = chats
        self._watch = watch
        self._ticker = ticker
        self._rename = rename
        self._chats = list(chats.chats)
        self._open: Conversation | None = None
        self._stale: set[int] = set()
        """Ids of chats whose rows have to be redrawn."""
        watch.ticked.connect(self._on_looked)
        self._disconnects = (
            chats.chat_added.connect(self._on_added),
            chats.chat_removed.connect(self._on_removed),
            chats.chat_changed.connect(self._on_changed),
            chats.message_changed.connect(self._on_message_changed),
        )

    def close(self) -> None:
        """Follow the service no longer."""
        for disconnect in self._disconnects:
            disconnect()
        self._watch.ticked.disconnect(self._on_looked)
        self._ticker.unmark(self._redraw_stale)

    def set_open(self, chat: Conversation | None) -> None:
        """Mark the chat that is in the active pane."""
        old, self._open = self._open, chat
        for changed in (old, chat):
            if changed in self._chats:
                self._redraw(changed)

    def index_of(self, chat: Conversation) -> QModelIndex:
        """The row of a chat; invalid if there is none."""
        return self.index(self._chats.index(chat)) if chat in self._chats else QModelIndex()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._chats)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        chat = self._chats[index.row()]
        match role:
            case (
                Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole | Qt.ItemDataRole.ToolTipRole
            ):
                return chat.title
            case Qt.ItemDataRole.AccessibleTextRole:
                words = self._words(chat)
                return tr("{title}, {state}").format(title=chat.title, state=words.text)
            case ChatRole.CHAT:
                return chat
            case ChatRole.WORDS:
                return self._words(chat)
            case ChatRole.IS_OPEN:
                return chat is self._open
            case ChatRole.HUE:
                return self._watch.others.hue(self._watch.run_of(chat))
        return None

    def setData(self, index: _Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        self._rename(self._chats[index.row()], str(value))
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        return flags | Qt.ItemFlag.ItemIsEditable if index.isValid() else flags

    def _words(self, chat: Conversation) -> StatusWords:
        reply = chat.running_message
        if reply is None:
            return describe_chat(chat, time.time())
        return describe_row(reply, self._watch.run_of(chat))

    def _on_looked(self) -> None:
        """Places and waits of replies outside the pool change without an event of their own."""
        for chat in self._chats:
            if chat.running_message is not None:
                self._redraw(chat)

    def _on_added(self, chat: Conversation) -> None:
        row = self._service.chats.index(chat)
        self.beginInsertRows(QModelIndex(), row, row)
        self._chats.insert(row, chat)
        self.endInsertRows()

    def _on_removed(self, chat: Conversation) -> None:
        row = self._chats.index(chat)
        self.beginRemoveRows(QModelIndex(), row, row)
        del self._chats[row]
        self.endRemoveRows()

    def _on_changed(self, chat: Conversation) -> None:
        if chat not in self._chats:
            return
        row, target = self._chats.index(chat), self._service.chats.index(chat)
        if target != row:
            below = target + (target > row)
            self.beginMoveRows(QModelIndex(), row, row, QModelIndex(), below)
            self._chats.insert(target, self._chats.pop(row))
            self.endMoveRows()
        self._redraw(chat)

    def _on_message_changed(self, message: Message) -> None:
        self._stale.add(message.chat_id)
        self._ticker.mark(self._redraw_stale)

    def _redraw_stale(self) -> None:
        stale, self._stale = self._stale, set()
        for row, chat in enumerate(self._chats):
            if chat.chat_id in stale:
                self.dataChanged.emit(self.index(row), self.index(row))

    def _redraw(self, chat: Conversation | None) -> None:
        if chat is not None:
            index = self.index_of(chat)
            self.dataChanged.emit(index, index)
