"""The transcript of one chat: what the reader sees of it, and that nothing moves what is being read.

The view sticks to the newest text until the reader scrolls away from it. Rows come from a `RowWindow`; they are placed
here and not by a layout, so that a change and the reader's place are settled in one step. GUI thread; must not import
services.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QScrollArea, QWidget

from studio.models.chat import Conversation, Message
from studio.views.chat.foot_view import FootView
from studio.views.chat.formula_view import FormulaView
from studio.views.chat.inline_formulas import has_formulas
from studio.views.chat.kit import Kit
from studio.views.chat.message_editor import MessageEditor
from studio.views.chat.prose_view import ProseView
from studio.views.chat.quiet_prose import QuietProse
from studio.views.chat.row_events import RowEvents, foot_of
from studio.views.chat.row_views import RowView
from studio.views.chat.row_window import RowWindow
from studio.views.chat.sections import Row, Section
from studio.views.focus_ring import FocusRing
from studio.views.frame_ticker import FrameTicker
from studio.views.icon_button import IconButton
from studio.views.words import tr

_COLUMN_PX = 760
SIDE_PX = 24
_SLICE_S = 0.006
"""How long the window may be kept busy with rows out of sight before it looks at the user again."""
_PAUSE_MS = 4
"""Between two slices: timers without a pause could starve others."""
_STICK_PX = 8
_STEP_PX = 24
_MOST_ROUNDS = 12
"""Laying out what is seen ends by itself; this is for the case that it does not."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reader was in a chat, for when the chat is shown again."""

    message_id: int
    row: int
    """Of the rows of that message."""
    offset: int
    """Of the row's top below the top of what was seen, in pixels."""


@dataclass(frozen=True, slots=True)
class _Read:
    """What the reader reads, and how far below the top of what is seen it is."""

    section: Section[RowView]
    row: Row[RowView] | None
    offset: int

    @property
    def y(self) -> int:
        return self.section.top + (self.row.top if self.row is not None else 0)


class ChatView(QScrollArea):
    """Shows `chat.messages`. The owner calls `sync` when others are in it and `mark_changed` for one that changed."""

    def __init__(self, chat: Conversation, kit: Kit, ticker: FrameTicker, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("transcript")
        self.setAccessibleName(tr("Messages"))
        self._chat = chat
        self._kit = kit
        self._ticker = ticker
        self._changed: set[int] = set()
        """Ids of messages to be redrawn with the next frame."""
        self._sticks = True
        self._is_placing = False
        self._page = QWidget()
        self._page.setObjectName("transcriptPage")
        # Opaque, and where it grows only the new part is drawn: what was scrolled is copied, not drawn anew.
        self._page.setAutoFillBackground(True)
        self._page.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.events = RowEvents(self)
        self.rows = RowWindow(self._page, kit, self.events)
        self.events.attach(self.rows)
        self.setWidget(self._page)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.to_end_button = IconButton("down", tr("To the end"), self)
        self.to_end_button.setObjectName("toEnd")
        self.to_end_button.setFixedSize(34, 34)
        self.to_end_button.setFocusPolicy(Qt.FocusPolicy.TabFocus)  # a click leaves the cursor
        self.to_end_button.hide()
        self.to_end_button.clicked.connect(self.scroll_to_end)
        FocusRing(self)
        self._later = _single_shot(self, _PAUSE_MS, self._lay_out_more)
        self._placing = _single_shot(self, 0, self._measure_again)
        bar = self.verticalScrollBar()
        bar.setSingleStep(_STEP_PX)
        bar.valueChanged.connect(self._on_scrolled)
        kit.formulas.ready.connect(self._on_formulas_ready)
        self.sync()

    def close_view(self) -> None:
        """Ask the ticker for no more frames; call it before the widget goes."""
        self._ticker.unmark(self._redraw_changed)
        self._kit.formulas.ready.disconnect(self._on_formulas_ready)
        self.rows.clear()

    def foot_of(self, message: Message) -> FootView | None:
        """What stands under a message, while that is near what is seen."""
        section = self.rows.section_of(message.message_id)
        return foot_of(section) if section is not None else None

    @property
    def feet(self) -> list[FootView]:
        """The lines under those messages that are near what is seen."""
        return [row.view for _, row in self.rows.places if isinstance(row.view, FootView)]

    @property
    def sticks(self) -> bool:
        """Whether the view follows the newest text."""
        return self._sticks

    @property
    def first_seen_index(self) -> int:
        """The index of the first message that is seen."""
        top = self.verticalScrollBar().value()
        seen = next(self.rows.rows_between(top, top + self.viewport().height()), None)
        return seen[0].index if seen is not None else 0

    @property
    def place(self) -> Place | None:
        """Where the reader is; None: at the end, which is followed."""
        read = self._read()
        if read is None or read.row is None:
            return None
        rows = read.section.rows
        number = next(number for number, row in enumerate(rows) if row is read.row)
        return Place(read.section.message.message_id, number, read.offset)

    def go_to(self, place: Place) -> None:
        """Bring back what the reader saw; nothing if the message is not shown any more."""
        section = self.rows.section_of(place.message_id)
        if section is None:
            return
        section.split(self.rows.width)
        self._sticks = False
        row = section.rows[min(place.row, len(section.rows) - 1)]
        self._keep_place(_Read(section, row, place.offset))

    def sync(self) -> None:
        """The chat has other messages than before: show these, and keep what is still there."""
        with self._place_kept():
            self.events.forget_all()
            self.rows.sync(self._chat)
            for section, _ in self.rows.places:
                self.events.reveal(section)

    def mark_changed(self, message_id: int) -> None:
        """Have a message redrawn with the next frame. O(1), called for every token."""
        self._changed.add(message_id)
        self._ticker.mark(self._redraw_changed)

    def scroll_to_end(self) -> None:
        """Show the newest text and follow it again."""
        self._sticks = True
        self._place_again()

    def show_row(self, section: Section[RowView], row: Row[RowView]) -> None:
        """Scroll to a row, somewhere below the top, and let its thinking be seen."""
        if row.is_hidden:
            section.is_open = section.is_open_by_hand = True
            section.fold()
            self.rows.settle(section)
        self._sticks = False
        for _ in range(2):  # what lies around it is measured only when it is seen
            bar, third = self.verticalScrollBar(), self.viewport().height() // 3
            self._is_placing = True
            self._fit_page()
            bar.setValue(section.top + row.top - third)
            self._is_placing = False
            self._place_again()

    def show_message(self, message_id: int) -> None:
        """Scroll to a message; nothing if it is not shown."""
        section = self.rows.section_of(message_id)
        if section is not None:
            section.split(self.rows.width)
            self.show_row(section, section.rows[0])

    def start_edit(self, message: Message, *, is_edited: bool = True) -> None:
        """Put an editor in the place of a message, or the message back."""
        section = self.rows.section_of(message.message_id)
        if section is None or section.is_edited is is_edited:
            return
        if not is_edited:
            self.setFocus(Qt.FocusReason.ShortcutFocusReason)  # or it would go anywhere
        with self._place_kept():
            section.edit(is_edited=is_edited, width=self.rows.width)
            self.rows.drop_gone(section)
            self.rows.settle(section)
        row, bar = section.rows[0], self.verticalScrollBar()
        is_seen = 0 <= section.top + row.top - bar.value() < self.viewport().height()
        if is_edited and not is_seen:
            self.show_row(section, row)
        if is_edited and isinstance(row.view, MessageEditor):
            row.view.start()

    def place_later(self) -> None:
        """Something in a row has another height now, for a reason of its own."""
        self._placing.start()

    def toggle_thoughts(self, section: Section[RowView]) -> None:
        """Fold the thinking of a message, or let it be seen."""
        section.is_open, section.is_open_by_hand = not section.is_open, True
        with self._place_kept(section):
            section.fold()
            self.rows.settle(section)
        self.events.show_thoughts(section)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        if self.events.selection.on_key(event):
            return
        if event.key() == Qt.Key.Key_Home:
            bar.setValue(0)
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

    def _redraw_changed(self) -> None:
        changed, self._changed = self._changed, set()
        read = self._read()
        has_moved = False
        for message_id in changed:
            section = self.rows.section_of(message_id)
            if section is not None:
                has_moved = self.rows.update(section) or has_moved
                has_moved = self._fold_when_over(section) or has_moved
                self.events.show_thoughts(section)
                self.events.reveal(section)
        if has_moved:
            self._keep_place(read)
        self.events.selection.follow()

    def _fold_when_over(self, section: Section[RowView]) -> bool:
        """Thinking folds itself when it is over, unless it is being read; whether it did."""
        is_over = section.has_answer and not section.is_open_by_hand
        if not (section.is_open and is_over and self._sticks):
            return False
        section.is_open = False
        section.fold()
        self.rows.settle(section)
        return True

    def _on_formulas_ready(self) -> None:
        """Formulas that were asked for can be drawn now: have the rows that show some measured again."""
        with self._place_kept():
            for section, row in self.rows.places:
                view, kinds = row.view, FormulaView | ProseView | QuietProse
                if isinstance(view, kinds) and has_formulas(row.block.markdown):
                    view.refresh()
                    self.rows.measure(section, row)

    def _measure_again(self) -> None:
        with self._place_kept():
            for section, row in self.rows.places:
                self.rows.measure(section, row)

    def _place_again(self) -> None:
        with self._place_kept():
            pass

    @contextmanager
    def _place_kept(self, still: Section[RowView] | None = None) -> Iterator[None]:
        """Change rows inside; afterwards the end, or what the reader reads, is where it was on screen.

        `still` names a section whose top is to stay where it is, whatever the reader reads.
        """
        read = self._read(still)
        yield
        self._keep_place(read)

    def _read(self, still: Section[RowView] | None = None) -> _Read | None:
        """What is to stay where it is on screen; None: the end."""
        top = self.verticalScrollBar().value()
        if still is not None:
            return _Read(still, None, still.top - top)
        if self._sticks:
            return None
        seen = next(self.rows.rows_between(top, top + self.viewport().height()), None)
        return _Read(*seen, seen[0].top + seen[1].top - top) if seen is not None else None

    def _keep_place(self, read: _Read | None) -> None:
        """Lay out what is seen, until it is what is to be seen."""
        if not self.isVisible():
            return  # it is laid out when it is shown, at the width that it has then
        bar = self.verticalScrollBar()
        self._is_placing = True
        self.rows.set_column(*column_of(self.width()))
        if read is not None and read.row is not None and self.rows.has(read.section):
            self.rows.measure(read.section, read.row)  # a guess could have it out of sight
        for _ in range(_MOST_ROUNDS):
            self._fit_page()
            if read is None and self._sticks:
                bar.setValue(bar.maximum())
            elif read is not None and self.rows.has(read.section):
                bar.setValue(read.y - read.offset)
            if not self.rows.lay_out(bar.value(), bar.value() + self.viewport().height()):
                break
        self._place_views()
        self._is_placing = False
        if self._sticks and self.to_end_button.hasFocus():
            self.setFocus(Qt.FocusReason.OtherFocusReason)  # or it would go anywhere
        is_below = self.rows.bottom > bar.value() + self.viewport().height()
        self.to_end_button.setVisible(is_below and not self._sticks)

    def _fit_page(self) -> None:
        port = self.viewport().size()
        height = max(port.height(), self.rows.bottom + SIDE_PX)
        self._page.resize(port.width(), height)
        bar = self.verticalScrollBar()  # Qt would see to it only later while nothing is on screen
        bar.setRange(0, height - port.height())
        bar.setPageStep(port.height())

    def _place_views(self) -> None:
        """Views are kept for two pages above and below what is seen, made for one."""
        top, height = self.verticalScrollBar().value(), self.viewport().height()
        self.rows.place(top - 2 * height, top + 3 * height)
        if self.isVisible() and not self._later.isActive():
            self._later.start()

    def _lay_out_more(self) -> None:
        """Make a slice of the rows that the reader may come to next."""
        top, height = self.verticalScrollBar().value(), self.viewport().height()
        end_s = perf_counter() + _SLICE_S
        read, num_made = self._read(), 0
        while perf_counter() < end_s:
            done = self.rows.lay_out(top - height, top + 2 * height, most=1)
            num_made += done
            if not done:
                break
        if num_made:
            self._keep_place(read)

    def _on_scrolled(self, value: int) -> None:
        if self._is_placing:
            return
        self._sticks = value >= self.verticalScrollBar().maximum() - _STICK_PX
        self._place_again()


def column_of(width_px: int) -> tuple[int, int]:
    """(left edge, width) of the column of text in the middle of a transcript. Its scroll bar stands at the side, so
    that its coming wraps no line anew."""
    side = max(SIDE_PX, (width_px - _COLUMN_PX) // 2)
    return side, width_px - 2 * side


def _single_shot(view: ChatView, interval_ms: int, do: Callable[[], None]) -> QTimer:
    """A timer that does something once, after what is happening now."""
    timer = QTimer(view)
    timer.setSingleShot(True)
    timer.setInterval(interval_ms)
    timer.timeout.connect(do)
    return timer
