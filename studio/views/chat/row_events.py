"""What the user does with single rows: hovering, actions, folding, editing, selecting. GUI thread; no services.

Hears of every view that comes and goes in a transcript, and connects it.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, Signal
from PySide6.QtGui import QContextMenuEvent, QCursor, QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from studio.models.chat import Role
from studio.models.thoughts import without_thoughts
from studio.views.chat.code_block import CodeBlock
from studio.views.chat.foot_view import FootView, MessageAction
from studio.views.chat.message_editor import MessageEditor
from studio.views.chat.row_views import RowView
from studio.views.chat.row_window import RowWindow
from studio.views.chat.sections import Row, RowKind, Section
from studio.views.chat.selection import Selection
from studio.views.chat.thought_head import ThoughtHead
from studio.views.chat.tool_view import ToolView
from studio.views.words import tr

if TYPE_CHECKING:
    from studio.views.chat.chat_view import ChatView


class RowEvents(QObject):
    """`attach` it to the rows before the first of them is made."""

    action_wanted = Signal(object, object)
    """A Message, and the MessageAction to be done with it; copying is done here."""
    edit_wanted = Signal(object, str)
    """A prompt, and what it is to say instead."""
    foot_made = Signal(object)
    """A FootView that wants to be told its actions."""

    row_made = Signal(object)
    """A Row that has a view now."""

    selection: Selection

    def __init__(self, view: ChatView) -> None:
        super().__init__(view)
        self._view = view
        self._rows: RowWindow | None = None
        self._hovered: Section[RowView] | None = None
        self._thinking_since_s: dict[int, float] = {}

    def attach(self, rows: RowWindow) -> None:
        """Hear of these rows."""
        self._rows = rows
        self.selection = Selection(self._view, rows)

    def forget_all(self) -> None:
        """Other messages are shown: nothing is hovered or selected."""
        self._hovered = None
        self.selection.clear()

    def on_made(self, section: Section[RowView], row: Row[RowView]) -> None:
        view = row.view
        assert view is not None, "it was just made"
        view.installEventFilter(self)
        if view.text_edit is not None:
            view.text_edit.viewport().installEventFilter(self)  # its menu comes from there
        self.selection.watch(section, row)
        self.row_made.emit(row)
        match view:
            case FootView():
                view.wanted.connect(lambda action: self._do(section, action))
                view.neighbour_wanted.connect(lambda step: self._focus_foot(section, step))
                view.set_revealed(is_revealed=self._is_revealed(section))
                self.foot_made.emit(view)
            case ThoughtHead():
                view.toggled.connect(lambda: self._view.toggle_thoughts(section))
                self._show_thought(section, view)
            case ToolView():
                view.grown.connect(self._view.place_later)
            case MessageEditor():
                message = section.message
                view.submitted.connect(lambda text: self.edit_wanted.emit(message, text))
                view.cancelled.connect(lambda: self._view.start_edit(message, is_edited=False))
                view.grown.connect(self._view.place_later)

    def on_dropping(self, row: Row[RowView]) -> None:
        self.selection.forget(row)
        if isinstance(row.view, CodeBlock):
            row.view.let_go()

    def show_thoughts(self, section: Section[RowView]) -> None:
        """Say above the thinking of a message how it stands."""
        if section.is_thinking and section.message.status.is_alive:
            self._thinking_since_s.setdefault(section.message.message_id, monotonic())
        for row in section.rows:
            if isinstance(row.view, ThoughtHead):
                self._show_thought(section, row.view)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Enter, QEvent.Type.Leave):
            self._hover()
        elif isinstance(event, QContextMenuEvent) and isinstance(watched, QWidget):
            return self._offer_copy(watched, event)
        return False

    def _show_thought(self, section: Section[RowView], head: ThoughtHead) -> None:
        message = section.message
        is_running = section.is_thinking and message.status.is_alive
        seconds = message.stats.thought_s
        since_s = self._thinking_since_s.get(message.message_id)
        if seconds is None and since_s is not None and is_running:
            seconds = monotonic() - since_s
        head.show_state(seconds, is_open=section.is_open, is_running=is_running)

    def _do(self, section: Section[RowView], action: MessageAction) -> None:
        message = section.message
        if action is MessageAction.COPY:
            is_reply = message.role is Role.ASSISTANT
            text = without_thoughts(message.text) if is_reply else message.text
            QGuiApplication.clipboard().setText(text or message.text)
            foot = foot_of(section)
            if foot is not None:
                foot.show_copied()
        else:
            self.action_wanted.emit(message, action)

    def _focus_foot(self, section: Section[RowView], step: int) -> None:
        """Bring the keyboard to the message above or below, and that into sight."""
        assert self._rows is not None
        index = section.index + step
        if not 0 <= index < len(self._rows.sections):
            return
        near = self._rows.sections[index]
        near.split(self._rows.width)
        self._view.show_row(near, near.rows[-1])
        foot = foot_of(near)
        if foot is not None:
            foot.take_focus()

    def _hover(self) -> None:
        assert self._rows is not None
        port = self._view.viewport()
        here = port.mapFromGlobal(QCursor.pos())
        hovered = None
        if port.rect().contains(here):
            y = here.y() + self._view.verticalScrollBar().value()
            hovered = next((s for s, _ in self._rows.rows_between(y, y + 1)), None)
        if hovered is self._hovered:
            return
        before, self._hovered = self._hovered, hovered
        for section in filter(None, (before, hovered)):
            self.reveal(section)

    def reveal(self, section: Section[RowView]) -> None:
        """Show or hide the buttons below a message."""
        foot = foot_of(section)
        if foot is not None:
            foot.set_revealed(is_revealed=self._is_revealed(section))

    def _is_revealed(self, section: Section[RowView]) -> bool:
        """The newest reply always shows what can be done with it."""
        assert self._rows is not None
        is_last = section.index == len(self._rows.sections) - 1 and section.is_reply
        is_over = not section.message.status.is_alive
        return section is self._hovered or (is_last and is_over)

    def _offer_copy(self, watched: QWidget, event: QContextMenuEvent) -> bool:
        """Copying what is selected, in either form; other menus are the rows' own."""
        if isinstance(watched, FootView | MessageEditor):
            return False
        menu = QMenu(watched)
        copy = menu.addAction(tr("Copy"))
        copy.triggered.connect(lambda: self.selection.copy())
        as_markdown = menu.addAction(tr("Copy as Markdown"))
        as_markdown.triggered.connect(lambda: self.selection.copy(as_markdown=True))
        menu.addSeparator()
        all_of_it = menu.addAction(tr("Select all messages"))
        all_of_it.triggered.connect(self.selection.select_all)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(event.globalPos() if not event.globalPos().isNull() else QPoint())
        return True


def foot_of(section: Section[RowView]) -> FootView | None:
    """What stands under a message, if it has a view."""
    row = section.rows[-1] if section.rows else None
    is_foot = row is not None and row.kind is RowKind.FOOT
    return row.view if is_foot and row is not None and isinstance(row.view, FootView) else None
