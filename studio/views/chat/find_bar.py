"""Finds words in one chat: hits counted and stepped through, shown in every row that is on screen. GUI thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QTextEdit, QWidget

from studio.models.chat import Conversation
from studio.models.search_hit import FoundPlace
from studio.views.chat.chat_view import ChatView
from studio.views.chat.finding import Hit, find_all
from studio.views.chat.row_views import RowView
from studio.views.chat.sections import Row, Section
from studio.views.icon_button import IconButton
from studio.views.theme import Theme
from studio.views.words import count, tr

_PAUSE_MS = 120
_MOST_MARKS = 200
"""Of one row: more would only be slow."""


class FindBar(QFrame):
    """Hidden until `open_for`."""

    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("findBar")
        self._theme = theme
        self._texts: tuple[str, ...] = ()
        """Any of them is a hit: what stands in the field, or the words that a search over all chats has found."""
        self._chat: Conversation | None = None
        self._view: ChatView | None = None
        self._hits: list[Hit] = []
        self._place = -1
        self.field = QLineEdit(self)
        self.field.setPlaceholderText(tr("Find in this chat"))
        self.field.setAccessibleName(tr("Find in this chat"))
        self.field.setClearButtonEnabled(False)
        self._count = QLabel(self)
        self._count.setObjectName("secondary")
        self.previous = IconButton("chevron-up", tr("Previous hit"), self)
        self.next = IconButton("chevron-down", tr("Next hit"), self)
        close = IconButton("close", tr("Close"), self)
        for button in (self.previous, self.next, close):
            button.setObjectName("small")
        self.previous.clicked.connect(lambda: self.step(-1))
        self.next.clicked.connect(lambda: self.step(1))
        close.clicked.connect(self.close_bar)
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.setInterval(_PAUSE_MS)
        self._later.timeout.connect(self.search)
        self.field.textChanged.connect(self._on_typed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 6, 8, 6)
        layout.setSpacing(4)
        layout.addWidget(self.field, 1)
        layout.addWidget(self._count)
        layout.addWidget(self.previous)
        layout.addWidget(self.next)
        layout.addWidget(close)
        self.hide()

    def open_for(self, chat: Conversation, view: ChatView) -> None:
        """Find in this chat; what was looked for before is there to be looked for again."""
        self.show_in(chat, view)
        self.show()
        self.field.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.field.selectAll()
        self.search()

    def open_at(self, chat: Conversation, view: ChatView, place: FoundPlace) -> None:
        """Show what a search has found, from the message that it leads to on; the keyboard stays where it is."""
        self.show_in(chat, view)
        self.field.setText(place.query)
        self._texts = place.words
        self.show()
        self.search(from_id=place.message_id)

    def show_in(self, chat: Conversation | None, view: ChatView | None) -> None:
        """Another chat is shown, or another transcript of it."""
        if self._view is not None and self._view is not view:
            self._view.events.row_made.disconnect(self._mark)
        if view is not None and view is not self._view:
            view.events.row_made.connect(self._mark)
        self._chat, self._view = chat, view
        if view is None:
            self.hide()

    def close_bar(self) -> None:
        """Find no more."""
        self.hide()
        self._hits, self._place = [], -1
        self._mark_all()
        self.closed.emit()

    def search(self, *, from_id: int | None = None) -> None:
        """Look anew, and go to the first hit in this message, or else from what is seen on."""
        self._later.stop()
        if self._chat is None or self._view is None or self.isHidden():
            return
        self._hits = find_all(self._chat.messages, *self._texts)
        ids = [hit.message_id for hit in self._hits]
        self._place = ids.index(from_id) if from_id in ids else self._first_from(self._view)
        self._mark_all()
        self._show_hit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._mark_all()

    def step(self, places: int) -> None:
        """Go on to another hit, around the ends."""
        if self._later.isActive():
            self.search()
        elif self._hits:
            self._place = (self._place + places) % len(self._hits)
            self._show_hit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        is_back = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if is_enter and self.field.hasFocus():
            self.step(-1 if is_back else 1)
        elif event.key() == Qt.Key.Key_Escape:
            self.close_bar()
        else:
            super().keyPressEvent(event)

    def words(self) -> str:
        """What the count says."""
        return self._count.text()

    def _on_typed(self, text: str) -> None:
        self._texts = (text,)
        self._later.start()

    def _first_from(self, view: ChatView) -> int:
        """The first hit in the messages that are seen, or below; else the last one."""
        index = view.first_seen_index
        for place, hit in enumerate(self._hits):
            section = view.rows.section_of(hit.message_id)
            if section is not None and section.index >= index:
                return place
        return len(self._hits) - 1

    def _show_hit(self) -> None:
        has_hits = bool(self._hits)
        self.previous.setEnabled(has_hits)
        self.next.setEnabled(has_hits)
        if not self.field.text():
            self._count.setText("")
        elif not has_hits:
            self._count.setText(tr("Nothing found"))
        else:
            words = tr("{number} of {total}")
            self._count.setText(
                words.format(number=count(self._place + 1), total=count(len(self._hits)))
            )
            self._go_to(self._hits[self._place])

    def _go_to(self, hit: Hit) -> None:
        view = self._view
        section = view.rows.section_of(hit.message_id) if view is not None else None
        if view is None or section is None:
            return
        section.split(view.rows.width)
        row = section.row_at(hit.start)
        if row is None:
            return
        view.show_row(section, row)
        edit = row.view.text_edit if row.view is not None else None
        if edit is not None:
            self._select(edit, self._number_in(section, row, hit))

    def _number_in(self, section: Section[RowView], row: Row[RowView], hit: Hit) -> int:
        """Which of the row's hits it is, from 0."""
        return sum(
            1
            for other in self._hits
            if other.message_id == hit.message_id
            and other.start < hit.start
            and section.row_at(other.start) is row
        )

    def _select(self, edit: QTextEdit, number: int) -> None:
        found = _cursors(edit, self._texts)
        if found:
            edit.setTextCursor(found[min(number, len(found) - 1)])

    def _mark_all(self) -> None:
        if self._view is not None:
            for _, row in self._view.rows.places:
                self._mark(row)

    def _mark(self, row: Row[RowView]) -> None:
        """Show the hits in a row that has a view."""
        edit = row.view.text_edit if row.view is not None else None
        if edit is None or (self.isHidden() and not edit.extraSelections()):
            return
        marks = []
        for cursor in [] if self.isHidden() else _cursors(edit, self._texts):
            mark = QTextEdit.ExtraSelection()
            mark.cursor = cursor
            mark.format.setBackground(self._theme.colors.selected)
            marks.append(mark)
        edit.setExtraSelections(marks)


def _cursors(edit: QTextEdit, texts: Sequence[str]) -> list[QTextCursor]:
    """Each place in what is seen of a row, from its beginning."""
    found: dict[int, QTextCursor] = {}
    for text in filter(None, texts):
        cursor = edit.document().find(text)
        while not cursor.isNull() and len(found) < _MOST_MARKS:
            found.setdefault(cursor.selectionStart(), cursor)
            cursor = edit.document().find(text, cursor)
    return [found[start] for start in sorted(found)]
