"""A selection that runs over blocks and messages, also over those that have no widget now. GUI thread; no services.

Within one block Qt's own text widgets select. As soon as the mouse leaves the block it began in, the places between are
ours: the two ends are remembered by row, shown in whatever rows have a view, and outlive these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent, QTextCursor
from PySide6.QtWidgets import QAbstractScrollArea, QTextEdit

from studio.views.chat.copied_text import markdown_between, plain_between
from studio.views.chat.formula_view import FormulaView
from studio.views.chat.markdown_blocks import BlockKind
from studio.views.chat.row_views import RowView
from studio.views.chat.row_window import RowWindow
from studio.views.chat.sections import Row, RowKind, Section

_SCROLL_MS = 30
_SCROLL_PX = 24
END = 1 << 30
"""A place behind all text of a row."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in the text of a row."""

    section: Section[RowView]
    row: Row[RowView]
    place: int

    @property
    def order(self) -> tuple[int, int, int]:
        return self.section.index, self.section.rows.index(self.row), self.place


class Selection(QObject):
    """Of one transcript."""

    def __init__(self, area: QAbstractScrollArea, rows: RowWindow) -> None:
        super().__init__(area)
        self._area = area
        self._rows = rows
        self._anchor: Spot | None = None
        self._end: Spot | None = None
        """Set only while more than one row is selected."""
        self._owner_of: dict[QObject, tuple[Section[RowView], Row[RowView]]] = {}
        self._scrolling = QTimer(self)
        self._scrolling.setInterval(_SCROLL_MS)
        self._scrolling.timeout.connect(self._scroll_on)
        self._mouse = QPoint()

    def watch(self, section: Section[RowView], row: Row[RowView]) -> None:
        """A row has a view: hear its mouse, and show what is selected in it."""
        edit = _edit_of(row)
        if edit is not None:
            self._owner_of[edit.viewport()] = (section, row)
            edit.viewport().installEventFilter(self)
            edit.installEventFilter(self)
        if self._end is not None:
            self._show_in(section, row)

    def forget(self, row: Row[RowView]) -> None:
        """The view of a row goes; what is selected stays so."""
        edit = _edit_of(row)
        if edit is not None:
            edit.viewport().removeEventFilter(self)
            edit.removeEventFilter(self)
            self._owner_of.pop(edit.viewport(), None)

    def select_all(self) -> None:
        """Select every message of the chat."""
        sections = self._rows.sections
        if not sections:
            return
        for section in (sections[0], sections[-1]):
            section.split(self._rows.width)
        self._anchor = Spot(sections[0], sections[0].rows[0], 0)
        self._end = Spot(sections[-1], sections[-1].rows[-1], END)
        self._show()

    def follow(self) -> None:
        """Text has come: where rows are selected to their end, it is selected too, as it will be copied."""
        if self._end is not None:
            self._show()

    def clear(self) -> None:
        """Select nothing."""
        had_rows = self._end is not None
        self._anchor = self._end = None
        self._scrolling.stop()
        if had_rows:
            self._show()

    def copy(self, *, as_markdown: bool = False) -> bool:
        """Put what is selected on the clipboard, as text and as Markdown; False if nothing is."""
        pieces = list(self._selected())
        plain = "\n\n".join(filter(None, (plain_between(*piece) for piece in pieces)))
        markdown = "\n\n".join(filter(None, (markdown_between(*piece) for piece in pieces)))
        if not plain and not markdown:
            return False
        data = QMimeData()
        data.setText(markdown if as_markdown else plain)
        data.setData("text/markdown", markdown.encode())
        QGuiApplication.clipboard().setMimeData(data)
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent):
            return self.on_key(event)
        owner = self._owner_of.get(watched)
        if owner is None or not isinstance(event, QMouseEvent):
            return False
        is_left = event.button() is Qt.MouseButton.LeftButton
        match event.type():
            case QEvent.Type.MouseButtonPress if is_left:
                return self._on_press(*owner, event)
            case QEvent.Type.MouseMove if event.buttons() & Qt.MouseButton.LeftButton:
                return self._on_drag(owner[1], event)
            case QEvent.Type.MouseButtonRelease if is_left:
                self._scrolling.stop()
        return False

    def on_key(self, event: QKeyEvent) -> bool:
        """Copy and select all, wherever in the transcript the keyboard is; whether the key was one of these."""
        is_press = event.type() is QEvent.Type.KeyPress
        if event.matches(QKeySequence.StandardKey.Copy):
            if is_press:
                self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            if is_press:
                self.select_all()
        else:
            return False
        event.accept()
        return True

    def _on_press(self, section: Section[RowView], row: Row[RowView], event: QMouseEvent) -> bool:
        here = event.globalPosition().toPoint()
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and self._anchor is not None:
            if self._anchor.row is not row:
                self._extend_to(here)
                return True
            return False
        self.clear()
        for other in tuple(self._owner_of.values()):
            if other[1] is not row:
                _clear(other[1])
        self._anchor = Spot(section, row, _place_in(row, here))
        return False

    def _on_drag(self, row: Row[RowView], event: QMouseEvent) -> bool:
        self._mouse = event.globalPosition().toPoint()
        edit = _edit_of(row)
        if edit is None or self._anchor is None or self._anchor.row is not row:
            return False
        inside = edit.viewport().rect().contains(edit.viewport().mapFromGlobal(self._mouse))
        if inside:
            if self._end is not None:
                self._end = None
                self._show()
            return False
        self._scrolling.start()
        self._extend_to(self._mouse)
        return True

    def _extend_to(self, here: QPoint) -> None:
        place = self._row_near(here)
        if place is None:
            return
        section, row = place
        self._end = Spot(section, row, _place_in(row, here))
        self._show()

    def _row_near(self, here: QPoint) -> tuple[Section[RowView], Row[RowView]] | None:
        """The row at this height, or the nearest one that has text."""
        y = here.y()
        best, least = None, END
        for section, row in self._rows.places:
            if row.view is None or row.kind is RowKind.FOOT:
                continue
            top = row.view.mapToGlobal(QPoint(0, 0)).y()
            distance = max(top - y, y - top - row.height, 0)
            if distance < least:
                best, least = (section, row), distance
        return best

    def _scroll_on(self) -> None:
        """The mouse is held above or below what is seen: go on there."""
        port = self._area.viewport()
        y = port.mapFromGlobal(self._mouse).y()
        step = -_SCROLL_PX if y < 0 else _SCROLL_PX if y > port.height() else 0
        if step:
            bar = self._area.verticalScrollBar()
            bar.setValue(bar.value() + step)
            self._extend_to(self._mouse)

    def _show(self) -> None:
        for section, row in self._rows.places:
            self._show_in(section, row)

    def _show_in(self, section: Section[RowView], row: Row[RowView]) -> None:
        view = row.view
        start, end = self._range_in(section, row)
        if isinstance(view, FormulaView):
            view.set_selected(is_selected=end > start)
        edit = _edit_of(row)
        if edit is None:
            return
        if end <= start:
            _clear(row)
            return
        last = edit.document().characterCount() - 1
        cursor = QTextCursor(edit.document())
        cursor.setPosition(min(start, last))
        cursor.setPosition(min(end, last), QTextCursor.MoveMode.KeepAnchor)
        edit.setTextCursor(cursor)

    def _range_in(self, section: Section[RowView], row: Row[RowView]) -> tuple[int, int]:
        """What of a row is selected."""
        if self._anchor is None or self._end is None:
            return 0, 0
        first, last = sorted((self._anchor, self._end), key=lambda spot: spot.order)
        where = (section.index, section.rows.index(row))
        if not first.order[:2] <= where <= last.order[:2]:
            return 0, 0
        start = first.place if where == first.order[:2] else 0
        return start, last.place if where == last.order[:2] else END

    def _selected(self) -> Iterator[tuple[Row[RowView], int, int]]:
        """(row, start, end) of all that is selected, in order."""
        if self._anchor is None or self._end is None:
            for _, row in self._rows.places:
                edit = _edit_of(row)
                if edit is not None and edit.textCursor().hasSelection():
                    cursor = edit.textCursor()
                    yield row, cursor.selectionStart(), cursor.selectionEnd()
            return
        first, last = sorted((self._anchor, self._end), key=lambda spot: spot.order)
        for section in self._rows.sections[first.section.index : last.section.index + 1]:
            section.split(self._rows.width)
            for row in section.rows:
                is_text = row.kind in (RowKind.BLOCK, RowKind.PROMPT) and not row.is_hidden
                if is_text and row.block.kind is not BlockKind.THOUGHT:
                    start, end = self._range_in(section, row)
                    if end > start:
                        yield row, start, end


def _edit_of(row: Row[RowView]) -> QTextEdit | None:
    return row.view.text_edit if row.view is not None else None


def _clear(row: Row[RowView]) -> None:
    edit = _edit_of(row)
    if edit is not None and edit.textCursor().hasSelection():
        cursor = edit.textCursor()
        cursor.clearSelection()
        edit.setTextCursor(cursor)


def _place_in(row: Row[RowView], here: QPoint) -> int:
    """The place in a row's text that is nearest to a place on screen."""
    edit = _edit_of(row)
    if edit is None:
        return END
    port = edit.viewport()
    inside = port.mapFromGlobal(here)
    if inside.y() < 0:
        return 0
    if inside.y() >= port.height():
        return END
    return edit.cursorForPosition(inside).position()
