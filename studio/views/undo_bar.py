"""Says what has just been done and offers to take it back. GUI thread.

A bar over the lower end of the side bar, or, where that is hidden, a strip above the chats: it covers nothing of them.
It stays for some seconds, and for as long as the pointer or the focus is on it. What was done can be taken back from
the menu afterwards too, until something else is done.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from studio.models.undo import Undo, UndoKind
from studio.services.chat_book import ChatBook
from studio.views.actions import CommandId
from studio.views.icon_button import IconButton
from studio.views.key_hints import hint
from studio.views.labels import line
from studio.views.shadow import cast_shadow
from studio.views.tasks import Tasks
from studio.views.words import plural, shortened, tr

STAY_MS = 10_000
_WIDTH_PX = 264
"""Within the side bar: what lies beside it, the field to write in, stays in reach."""
_EDGE_PX = 8
_BOTTOM_PX = 36
"""Above the status line."""
_MARGINS = (12, 8, 6, 4)
_STRIP_MARGINS = (24, 4, 12, 4)
_NAME_CHARS = 24


class UndoBar(QFrame):
    """Hidden until something was done that can be taken back. `returned` carries a deleted chat that is back."""

    returned = Signal(object)
    changed = Signal()
    """There is something to be taken back, or nothing any more."""

    def __init__(self, book: ChatBook, tasks: Tasks, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("undoBar")
        self.setProperty("strip", False)
        self._tasks = tasks
        self._window = parent
        self._shadow = cast_shadow(self)
        self.undo: Undo | None = None
        """What `take_back` takes back."""
        self._text = line("", "body", self)
        self._button = QPushButton(tr("Undo"), self)
        self._button.setObjectName("link")
        hint(self._button, tr("Undo"), CommandId.UNDO)
        self._button.clicked.connect(self.take_back)
        close = IconButton("close", tr("Close this message"), self)
        close.setObjectName("small")
        close.clicked.connect(self.hide)
        self._sidebar: QWidget | None = None
        self._strips: QVBoxLayout | None = None
        self._below: QWidget | None = None
        self._foot = foot = QHBoxLayout()
        foot.setSpacing(4)
        foot.addStretch(1)
        foot.addWidget(self._button)
        foot.addWidget(close)
        self._column = column = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        column.setContentsMargins(*_MARGINS)
        column.setSpacing(2)
        column.addWidget(self._text, 1)
        column.addLayout(foot)
        self._timer = QTimer(self)
        self._timer.setInterval(STAY_MS)
        self._timer.timeout.connect(self._go)
        self._disconnect = book.undo_offered.connect(self.offer)
        parent.installEventFilter(self)
        self.hide()

    def stand_in(self, sidebar: QWidget, strips: QVBoxLayout, *, foot: QWidget) -> None:
        """Lie over this side bar, above its foot, or be the last of these strips while it is hidden."""
        self._sidebar, self._strips, self._below = sidebar, strips, foot
        for watched in (sidebar, foot):
            watched.installEventFilter(self)
        self._place()

    def close_bar(self) -> None:
        """Listen no more."""
        self._disconnect()
        self._timer.stop()

    def offer(self, undo: Undo) -> None:
        """Say what was done."""
        self.undo = undo
        words = words_of(undo)
        self._text.setText(words)
        self.setAccessibleName(words)
        self._button.setAccessibleDescription(words)
        self._place()
        self.show()
        self.raise_()
        self._timer.start()
        self.changed.emit()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def take_back(self) -> None:
        """Take back what was done last; nothing where nothing was."""
        undo, self.undo = self.undo, None
        self.hide()
        self.changed.emit()
        if undo is not None:
            self._tasks.start(self._take_back(undo))

    async def _take_back(self, undo: Undo) -> None:
        await undo.run()
        if undo.chat is not None:
            self.returned.emit(undo.chat)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide):
            self._place()
        return False

    def _go(self) -> None:
        focused = QApplication.focusWidget()
        is_used = self.underMouse() or (focused is not None and self.isAncestorOf(focused))
        if not is_used:
            self.hide()
            self._timer.stop()

    def _place(self) -> None:
        is_strip = self._sidebar is not None and self._sidebar.isHidden()
        if is_strip != self.property("strip"):
            self._become(is_strip=is_strip)
        if not is_strip:
            height = self._column.totalHeightForWidth(_WIDTH_PX)
            top = self._window.height() - height - _BOTTOM_PX
            if self._below is not None and not self._below.isHidden():
                top -= self._below.height()
            self.setGeometry(_EDGE_PX, top, _WIDTH_PX, height)

    def _become(self, *, is_strip: bool) -> None:
        was_shown, way = not self.isHidden(), QBoxLayout.Direction
        if self._strips is not None and is_strip:
            self._strips.addWidget(self)
        elif self._strips is not None:
            self._strips.removeWidget(self)
            self.setParent(self._window)
        self._column.setDirection(way.LeftToRight if is_strip else way.TopToBottom)
        self._column.setContentsMargins(*(_STRIP_MARGINS if is_strip else _MARGINS))
        self._shadow.setEnabled(not is_strip)
        self.setProperty("strip", is_strip)
        self.style().unpolish(self)
        self.style().polish(self)
        self.setVisible(was_shown)  # another parent hides it
        self.raise_()


def words_of(undo: Undo) -> str:
    """What was done, in words."""
    name, number = shortened(undo.name, _NAME_CHARS), undo.number
    match undo.kind:
        case UndoKind.CHATS_DELETED:
            text = tr("Deleted “{name}”")
            several = plural(number, "1 chat deleted", "{count} chats deleted")
        case UndoKind.CHATS_ARCHIVED:
            text = tr("Archived “{name}”")
            several = plural(number, "1 chat archived", "{count} chats archived")
        case UndoKind.CHATS_MOVED:
            text = tr("Moved “{name}”")
            several = plural(number, "1 chat moved", "{count} chats moved")
        case UndoKind.FOLDER_DELETED:
            text, several = tr("Folder deleted, its chats are kept: “{name}”"), ""
        case UndoKind.MESSAGE_DELETED:
            return tr("Message deleted")
        case UndoKind.PRESET_DELETED:
            text, several = tr("Deleted the preset “{name}”"), ""
    return text.format(name=name) if name else several
