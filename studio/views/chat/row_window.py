"""A window of widgets over the rows of a transcript of any length: made near what is seen, dropped far from it.

Knows where everything is, not where the reader is. GUI thread; must not import services.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from PySide6.QtWidgets import QWidget

from studio.models.chat import Conversation
from studio.views.chat.foot_view import FootView
from studio.views.chat.kit import Kit
from studio.views.chat.offsets import Offsets
from studio.views.chat.row_views import RowView, ViewStock, show_block
from studio.views.chat.sections import Row, Section

TOP_PX = 24

Place = tuple[Section[RowView], Row[RowView]]


class RowListener(Protocol):
    """Who wants to know of views that come and go."""

    def on_made(self, section: Section[RowView], row: Row[RowView]) -> None:
        """A row has a view now."""

    def on_dropping(self, row: Row[RowView]) -> None:
        """The row's view is about to go."""


class RowWindow:
    """The sections of one chat, and the views of those rows that were laid out."""

    def __init__(self, page: QWidget, kit: Kit, listener: RowListener) -> None:
        self.sections: list[Section[RowView]] = []
        self.num_made = 0
        """Views made so far, for the tests and the bench."""
        self._listener = listener
        self._left = 0
        self._width = 1
        self._offsets = Offsets(TOP_PX)
        self._by_id: dict[int, Section[RowView]] = {}
        self._made: dict[Row[RowView], Section[RowView]] = {}
        self._placed: dict[Row[RowView], tuple[tuple[int, int, int, int], bool]] = {}
        """Where views were put, and whether hidden: asking them costs more than all of them together need."""
        self._stock = ViewStock(kit, page)

    @property
    def bottom(self) -> int:
        """Where the last section ends."""
        return self._offsets.end - (self.sections[-1].gap_below if self.sections else 0)

    @property
    def places(self) -> list[Place]:
        """All rows that have a view, from the top to the bottom."""
        made = [(section, row) for row, section in self._made.items()]
        return sorted(made, key=lambda place: (place[0].index, place[1].top))

    @property
    def num_views(self) -> int:
        return len(self._made)

    @property
    def width(self) -> int:
        """Of the column of text."""
        return self._width

    def section_of(self, message_id: int) -> Section[RowView] | None:
        return self._by_id.get(message_id)

    def sync(self, chat: Conversation) -> None:
        """Have a section for each message of the chat; those of messages that are still there are kept."""
        messages, first = chat.messages, 0
        most = min(len(messages), len(self.sections))
        while first < most and self.sections[first].message is messages[first]:
            first += 1
        for section in self.sections[first:]:
            self._by_id.pop(section.message.message_id, None)
            self._drop_all(section.rows)
        del self.sections[first:]
        for message in messages[first:]:
            section = Section[RowView](message, self._width, self._offsets)
            section.index = len(self.sections)
            self.sections.append(section)
            self._by_id[message.message_id] = section
        self._settle_from(first)

    def set_column(self, left: int, width: int) -> None:
        """Where the column of text is; another width has all heights guessed again."""
        self._left = left
        if width != self._width:
            self._width = width
            for section in self.sections:
                section.guess(width)
            self._settle_from(0)

    def settle(self, section: Section[RowView]) -> None:
        """A section has another height: those below it move."""
        self._offsets.set(section.index, section.height + section.gap_below)

    def update(self, section: Section[RowView]) -> bool:
        """Show what a message says now, in those of its rows that have views; whether anything has to move."""
        height = section.height
        if section.is_split:
            for row in section.update(self._width):
                if row.view is not None:
                    self._measure(section, row)
            self.drop_gone(section)
            foot = section.rows[-1]
            if isinstance(foot.view, FootView):
                foot.view.refresh()
            section.place()
        else:
            section.guess(self._width)
        if section.height == height:
            return False
        self.settle(section)
        return True

    def drop_gone(self, section: Section[RowView]) -> None:
        """See to the views of rows that are no more."""
        gone, section.gone = section.gone, []
        self._drop_all(gone)

    def lay_out(self, top: int, bottom: int, *, most: int = 1000) -> int:
        """Make and measure rows between that are not; how many were. If any, others may be between now."""
        num_done = 0
        for section in self._sections_between(top, bottom):
            was_split, height = section.is_split, section.height
            section.split(self._width)
            for row in section.rows:
                is_due = row.view is None or not row.is_measured
                if is_due and _is_between(section, row, top, bottom) and num_done < most:
                    self._measure(section, row)
                    section.place()
                    num_done += 1
            if section.height != height:
                self.settle(section)
                num_done += not was_split
        return num_done

    def rows_between(self, top: int, bottom: int) -> Iterator[Place]:
        """What is between and not folded away, of what has been cut into rows."""
        for section in self._sections_between(top, bottom):
            for row in section.rows:
                if _is_between(section, row, top, bottom):
                    yield section, row

    def place(self, top: int, bottom: int) -> None:
        """Put the views where they belong, and drop those that are not between."""
        for row, section in tuple(self._made.items()):
            view = row.view
            if view is None:
                continue
            if not (_is_between(section, row, top, bottom) or _has_focus(view)):
                self._drop(row)
                continue
            box = (self._left, section.top + row.top, self._width, row.height)
            before = self._placed.get(row)
            if before != (box, row.is_hidden):
                self._placed[row] = (box, row.is_hidden)
                view.setGeometry(*box)
                if before is None or before[1] is not row.is_hidden:
                    view.setVisible(not row.is_hidden)

    def clear(self) -> None:
        """Drop every view."""
        self._drop_all(list(self._made))

    def _sections_between(self, top: int, bottom: int) -> Iterator[Section[RowView]]:
        for index in range(self._offsets.index_at(top), len(self.sections)):
            if self.sections[index].top >= bottom:
                return
            yield self.sections[index]

    def _settle_from(self, first: int) -> None:
        self._offsets.cut(first)
        for section in self.sections[first:]:
            self._offsets.append(section.height + section.gap_below)

    def has(self, section: Section[RowView]) -> bool:
        """Whether the section is still one of these."""
        return section.index < len(self.sections) and self.sections[section.index] is section

    def measure(self, section: Section[RowView], row: Row[RowView]) -> None:
        """The height of a row may be another one now, for a reason of its own."""
        height = row.height
        self._measure(section, row)
        if row.height != height:
            section.place()
            self.settle(section)

    def _measure(self, section: Section[RowView], row: Row[RowView]) -> None:
        """Have a view that shows the row, and take its height from it."""
        if row.view is not None and row.shown_kind is not row.block.kind:
            self._drop(row)  # what looked like a formula is none
        view = row.view
        if view is None:
            view = row.view = self._stock.take(section, row)
            row.shown_kind = row.block.kind
            view.resize(self._width, max(1, row.height))
            self._made[row] = section
            self.num_made += 1
            show_block(view, row.block)
            self._listener.on_made(section, row)
        else:
            show_block(view, row.block)
        row.height = view.heightForWidth(self._width)
        row.is_measured = True

    def _drop_all(self, rows: list[Row[RowView]]) -> None:
        for row in rows:
            self._drop(row)

    def _drop(self, row: Row[RowView]) -> None:
        view = row.view
        if view is not None:
            self._listener.on_dropping(row)
            row.view = None
            del self._made[row]
            self._placed.pop(row, None)
            self._stock.put_back(view)


def _is_between(section: Section[RowView], row: Row[RowView], top: int, bottom: int) -> bool:
    y = section.top + row.top
    return not row.is_hidden and y + row.height > top and y < bottom


def _has_focus(view: QWidget) -> bool:
    """Whether the keyboard is in it: it must not vanish under the user's hands."""
    focused = view.window().focusWidget()
    return focused is not None and (focused is view or view.isAncestorOf(focused))
