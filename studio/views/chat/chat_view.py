"""The transcript of one chat: a window of message widgets over a chat of any length. GUI thread.

At most MAX_VIEWS widgets exist; scrolling towards an end pages the next ones in and drops those at the other
end. The view sticks to the newest text until the reader scrolls away from it. Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from studio.models.chat import Conversation, Message
from studio.views.chat.message_view import MessageView, make_message_view
from studio.views.frame_ticker import FrameTicker
from studio.views.icon_button import IconButton
from studio.views.theme import Theme
from studio.views.words import tr

NUM_VIEWS = 60
MAX_VIEWS = 90
_PAGE = 20
COLUMN_PX = 760
SIDE_PX = 24
_MESSAGE_GAP_PX = 24
_NEAR_PX = 400
"""This close to an end of what is laid out, the next page comes."""
_STICK_PX = 8
_STEP_PX = 24


class ChatView(QScrollArea):
    """Shows `chat.messages`. The owner calls `add_message` for a new one and `mark_changed` for one that changed."""

    def __init__(
        self, chat: Conversation, theme: Theme, ticker: FrameTicker, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setObjectName("transcript")
        self.setAccessibleName(tr("Messages"))
        self._chat = chat
        self._theme = theme
        self._ticker = ticker
        self._changed: set[int] = set()
        """Ids of messages to be redrawn with the next frame."""
        self._views: list[MessageView] = []
        self._by_id: dict[int, MessageView] = {}
        self._first = 0
        """Index in `chat.messages` of the first message that has a view."""
        self._sticks = True
        self._held: tuple[QWidget, int] | None = None
        """A view and its distance from the top of the port, to be kept while the page changes around it."""
        self._page = QWidget(self)
        self._page.setObjectName("transcriptPage")
        self._column = QVBoxLayout(self._page)
        self._column.setSpacing(_MESSAGE_GAP_PX)
        self._column.addStretch(1)
        self.setWidget(self._page)
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._to_end = IconButton("down", tr("To the end"), self)
        self._to_end.setObjectName("toEnd")
        self._to_end.setFixedSize(34, 34)
        self._to_end.hide()
        self._to_end.clicked.connect(self.scroll_to_end)
        self._paging = QTimer(self)
        self._paging.setSingleShot(True)
        self._paging.timeout.connect(self._page_in)
        self._settling = QTimer(self)
        self._settling.setSingleShot(True)
        self._settling.timeout.connect(self._settle)
        bar = self.verticalScrollBar()
        bar.setSingleStep(_STEP_PX)
        bar.rangeChanged.connect(self._settle)
        bar.valueChanged.connect(self._on_scrolled)
        self._show_newest()

    def close_view(self) -> None:
        """Ask the ticker for no more frames; call it before the widget goes."""
        self._ticker.unmark(self._redraw_changed)

    def view_of(self, message_id: int) -> MessageView | None:
        """The view of a message, if it is in the window of views."""
        return self._by_id.get(message_id)

    @property
    def num_views(self) -> int:
        return len(self._views)

    @property
    def sticks(self) -> bool:
        """Whether the view follows the newest text."""
        return self._sticks

    def add_message(self, message: Message) -> None:
        """Show a message that was just appended to the chat, unless the reader is far away from the end."""
        index = self._first + len(self._views)
        if index < len(self._chat.messages) and self._chat.messages[index] is message:
            self._insert(len(self._views), message)
            if self._sticks:
                self._drop_first(len(self._views) - NUM_VIEWS)

    def mark_changed(self, message_id: int) -> None:
        """Have a message redrawn with the next frame. O(1), called for every token."""
        if message_id in self._by_id:
            self._changed.add(message_id)
            self._ticker.mark(self._redraw_changed)

    def scroll_to_end(self) -> None:
        """Show the newest text and follow it again."""
        self._sticks = True
        if self._first + len(self._views) < len(self._chat.messages):
            self._show_newest()
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())
        self._to_end.hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Home:
            self.verticalScrollBar().setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.scroll_to_end()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        side = max(SIDE_PX, (self.viewport().width() - COLUMN_PX) // 2)
        self._column.setContentsMargins(side, SIDE_PX, side, SIDE_PX)
        button = self._to_end
        button.move((self.width() - button.width()) // 2, self.height() - button.height() - 12)
        super().resizeEvent(event)

    def _show_newest(self) -> None:
        for view in self._views:
            self._discard(view)
        self._views.clear()
        self._first = max(0, len(self._chat.messages) - NUM_VIEWS)
        for message in self._chat.messages[self._first :]:
            self._insert(len(self._views), message)

    def _insert(self, index: int, message: Message) -> None:
        view = make_message_view(message, self._theme, self._page)
        self._views.insert(index, view)
        self._by_id[message.message_id] = view
        self._column.insertWidget(index, view)

    def _discard(self, view: MessageView) -> None:
        if self._held is not None and self._held[0] is view:
            self._held = None
        del self._by_id[view.message.message_id]
        self._column.removeWidget(view)
        view.hide()
        view.deleteLater()

    def _drop_first(self, number: int) -> None:
        for view in self._views[: max(0, number)]:
            self._discard(view)
            self._first += 1
        del self._views[: max(0, number)]

    def _drop_last(self, number: int) -> None:
        keep = len(self._views) - max(0, number)
        for view in self._views[keep:]:
            self._discard(view)
        del self._views[keep:]

    def _redraw_changed(self) -> None:
        changed, self._changed = self._changed, set()
        views = [view for id_ in changed if (view := self._by_id.get(id_)) is not None]
        if views and not self._sticks:
            self._hold()
        for view in views:
            view.redraw()

    def _page_in(self) -> None:
        """Bring in the page that the reader is about to reach, and hold the reader's place."""
        bar, messages = self.verticalScrollBar(), self._chat.messages
        last = self._first + len(self._views)
        if bar.value() < _NEAR_PX and self._first > 0:
            self._hold()
            low = max(0, self._first - _PAGE)
            for offset, message in enumerate(messages[low : self._first]):
                self._insert(offset, message)
            self._first = low
            self._drop_last(len(self._views) - MAX_VIEWS)
        elif bar.maximum() - bar.value() < _NEAR_PX and last < len(messages):
            self._hold()
            for message in messages[last : last + _PAGE]:
                self._insert(len(self._views), message)
            self._drop_first(len(self._views) - MAX_VIEWS)

    def _hold(self) -> None:
        top = self.verticalScrollBar().value()
        for view in self._views:
            if view.geometry().bottom() >= top:
                self._held = (view, view.y() - top)
                self._settling.start()
                return

    def _settle(self) -> None:
        """The page has its new layout: go back to the end, or to the place that was held."""
        bar = self.verticalScrollBar()
        if self._sticks:
            bar.setValue(bar.maximum())
        elif self._held is not None:
            view, offset = self._held
            bar.setValue(view.y() - offset)
        self._held = None

    def _on_scrolled(self, value: int) -> None:
        bar = self.verticalScrollBar()
        is_whole = self._first + len(self._views) == len(self._chat.messages)
        self._sticks = is_whole and value >= bar.maximum() - _STICK_PX
        self._to_end.setVisible(not self._sticks)
        if self._held is None and not self._sticks:
            self._paging.start()
