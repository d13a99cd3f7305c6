"""The transcript of one chat: a window of message widgets over a chat of any length.

At most MAX_VIEWS widgets exist; scrolling towards an end pages the next ones in and drops those at the other end. The
view sticks to the newest text until the reader scrolls away from it; then nothing moves what is being read. Messages
are placed here and not by a layout, so that a change and the reader's place are settled in one step. GUI thread; must
not import services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QScrollArea, QWidget

from studio.models.chat import Conversation, Message
from studio.views.chat.message_view import MessageView, make_message_view
from studio.views.frame_ticker import FrameTicker
from studio.views.icon_button import IconButton
from studio.views.theme import Theme
from studio.views.words import tr

NUM_VIEWS = 60
MAX_VIEWS = 90
_COLUMN_PX = 760
SIDE_PX = 24
_SCROLL_BAR_PX = 12
_FIRST_VIEWS = 4
"""Made at once when a chat is opened; the others of the window follow in slices."""
_SLICE_S = 0.008
"""How long the window may be kept busy with making views before it looks at the user again."""
_PAUSE_MS = 4
"""Between two slices: timers without a pause could starve others."""
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
        self.views: list[MessageView] = []
        self._by_id: dict[int, MessageView] = {}
        self._first = 0
        """Index in `chat.messages` of the first message that has a view."""
        self._sticks = True
        self._is_placing = False
        self._page = QWidget()
        self._page.setObjectName("transcriptPage")
        self.setWidget(self._page)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.to_end_button = IconButton("down", tr("To the end"), self)
        self.to_end_button.setObjectName("toEnd")
        self.to_end_button.setFixedSize(34, 34)
        self.to_end_button.hide()
        self.to_end_button.clicked.connect(self.scroll_to_end)
        self._paging = _later(self, self._page_in)
        self._paging.setInterval(_PAUSE_MS)
        self._placing = _later(self, self._place_again)
        bar = self.verticalScrollBar()
        bar.setSingleStep(_STEP_PX)
        bar.valueChanged.connect(self._on_scrolled)
        self._show_newest()

    def close_view(self) -> None:
        """Ask the ticker for no more frames; call it before the widget goes."""
        self._ticker.unmark(self._redraw_changed)

    def view_of(self, message_id: int) -> MessageView | None:
        """The view of a message, if it is in the window of views."""
        return self._by_id.get(message_id)

    @property
    def sticks(self) -> bool:
        """Whether the view follows the newest text."""
        return self._sticks

    def add_message(self, message: Message) -> None:
        """Show a message that was just appended to the chat, unless the reader is far away from the end."""
        index = self._first + len(self.views)
        if index < len(self._chat.messages) and self._chat.messages[index] is message:
            with self._place_kept():
                self._insert(len(self.views), message)
                if self._sticks:
                    self._drop_first(len(self.views) - NUM_VIEWS)

    def mark_changed(self, message_id: int) -> None:
        """Have a message redrawn with the next frame. O(1), called for every token."""
        if message_id in self._by_id:
            self._changed.add(message_id)
            self._ticker.mark(self._redraw_changed)

    def scroll_to_end(self) -> None:
        """Show the newest text and follow it again."""
        self._sticks = True
        if self._first + len(self.views) < len(self._chat.messages):
            self._show_newest()
        self._place_again()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Home:
            self.verticalScrollBar().setValue(0)
        elif event.key() == Qt.Key.Key_End:
            self.scroll_to_end()
        else:
            super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        button = self.to_end_button
        button.move((self.width() - button.width()) // 2, self.height() - button.height() - 12)
        self._place_again()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._place_again()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.StyleChange:
            self._placing.start()

    def _show_newest(self) -> None:
        with self._place_kept():
            self._drop_first(len(self.views))
            self._first = max(0, len(self._chat.messages) - _FIRST_VIEWS)
            for message in self._chat.messages[self._first :]:
                self._insert(len(self.views), message)
        self._paging.start()

    def _insert(self, index: int, message: Message) -> None:
        view = make_message_view(message, self._theme, self._page)
        view.layout_changed.connect(self._placing.start)
        view.show()
        self.views.insert(index, view)
        self._by_id[message.message_id] = view

    def _drop_first(self, number: int) -> None:
        dropped = self.views[: max(0, number)]
        self._first += len(dropped)
        self._drop(dropped)

    def _drop_last(self, number: int) -> None:
        self._drop(self.views[len(self.views) - max(0, number) :])

    def _drop(self, dropped: list[MessageView]) -> None:
        for view in dropped:
            self.views.remove(view)
            del self._by_id[view.message.message_id]
            view.hide()
            view.deleteLater()

    def _redraw_changed(self) -> None:
        changed, self._changed = self._changed, set()
        with self._place_kept():
            for message_id in changed:
                view = self._by_id.get(message_id)
                if view is not None:
                    view.redraw()

    def _page_in(self) -> None:
        """Make a slice of the views that are missing: up to NUM_VIEWS, and wherever the reader comes near an end."""
        bar, messages = self.verticalScrollBar(), self._chat.messages
        last = self._first + len(self.views)
        is_near_end = bar.maximum() - bar.value() < _NEAR_PX
        num_wanted = MAX_VIEWS + 1 if bar.value() < _NEAR_PX else NUM_VIEWS
        deadline_s = perf_counter() + _SLICE_S
        if is_near_end and last < len(messages):
            with self._place_kept():
                while last < len(messages) and perf_counter() < deadline_s:
                    self._insert(len(self.views), messages[last])
                    last += 1
                self._drop_first(len(self.views) - MAX_VIEWS)
            self._paging.start()
        elif self._first > 0 and len(self.views) < num_wanted:
            with self._place_kept():
                while self._first > 0 and len(self.views) < num_wanted:
                    self._first -= 1
                    self._insert(0, messages[self._first])
                    if perf_counter() > deadline_s:
                        break
                self._drop_last(len(self.views) - MAX_VIEWS)
            self._paging.start()

    def _place_again(self) -> None:
        with self._place_kept():
            pass

    @contextmanager
    def _place_kept(self) -> Iterator[None]:
        """Change messages inside; afterwards the end, or what the reader reads, is where it was on screen."""
        bar = self.verticalScrollBar()
        top = bar.value()
        read = next((view for view in self.views if view.geometry().bottom() > top), None)
        offset = read.y() - top if read is not None else 0
        yield
        self._is_placing = True
        self._place()
        if self._sticks:
            bar.setValue(bar.maximum())
        elif read in self.views:
            bar.setValue(read.y() - offset)
        self._is_placing = False
        self.to_end_button.setVisible(not self._sticks)

    def _place(self) -> None:
        side, width = column_of(self.width())
        y = SIDE_PX
        for view in self.views:
            height = view.heightForWidth(width)
            view.setGeometry(side, y, width, height)
            y += height + _MESSAGE_GAP_PX
        port = self.viewport().size()
        self._page.resize(port.width(), max(port.height(), y - _MESSAGE_GAP_PX + SIDE_PX))

    def _on_scrolled(self, value: int) -> None:
        if self._is_placing:
            return
        bar = self.verticalScrollBar()
        is_whole = self._first + len(self.views) == len(self._chat.messages)
        self._sticks = is_whole and value >= bar.maximum() - _STICK_PX
        self.to_end_button.setVisible(not self._sticks)
        if not (self._sticks or self._paging.isActive()):
            self._paging.start()


def column_of(width_px: int) -> tuple[int, int]:
    """(left edge, width) of the column of text in a transcript; room for the scroll bar is kept even while it is not
    there, so that its coming wraps no line anew."""
    room = width_px - _SCROLL_BAR_PX
    side = max(SIDE_PX, (room - _COLUMN_PX) // 2)
    return side, room - 2 * side


def _later(view: ChatView, do: Callable[[], None]) -> QTimer:
    """A timer that does something once, after what is happening now."""
    timer = QTimer(view)
    timer.setSingleShot(True)
    timer.timeout.connect(do)
    return timer
