"""The line under a message: how it stands, its figures, its versions, and what can be done with it. GUI thread.

It has the same height in every state, so that nothing jumps: one line, or in a narrow column two under a reply, so that
the buttons leave its words room. Its buttons are seen while the mouse or the keyboard is at
the message; together they are one stop of Tab, and the arrow keys lead from one to the next. Must not import services.
"""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLabel, QToolTip, QWidget

from studio.models.chat import Message, Role
from studio.views.chat.kit import Kit
from studio.views.elided_label import ElidedFigures
from studio.views.icon_button import IconButton
from studio.views.labels import dress
from studio.views.speech import say
from studio.views.state_mark import StateMark
from studio.views.status_words import Mark, Tone, describe_state, details
from studio.views.words import tr

_COPIED_MS = 1500
_HEIGHT_PX = 28
_NARROW_PX = 480
"""Below this, figures and buttons do not stand in one line."""
_LABEL_OF_TONE = {
    Tone.QUIET: "secondary",
    Tone.ACTIVE: "secondary",
    Tone.WAITING: "waiting",
    Tone.FAILED: "failed",
}


class MessageAction(Enum):
    """What can be done with one message."""

    PREVIOUS = "previous"
    NEXT = "next"
    COPY = "copy"
    EDIT = "edit"
    REGENERATE = "regenerate"
    CONTINUE = "continue"
    BRANCH = "branch"
    DELETE = "delete"


_BUTTONS = (
    (MessageAction.COPY, "copy", "Copy"),
    (MessageAction.EDIT, "edit", "Edit"),
    (MessageAction.REGENERATE, "again", "Answer again"),
    (MessageAction.CONTINUE, "continue", "Continue"),
    (MessageAction.BRANCH, "branch", "Branch from here"),
    (MessageAction.DELETE, "delete", "Delete"),
)


class FootView(QWidget):
    """`wanted` carries the MessageAction. Its buttons are made when somebody comes near them."""

    wanted = Signal(object)
    neighbour_wanted = Signal(int)
    """-1 or 1: the keyboard wants the foot of the message above or below."""
    text_edit = None

    def __init__(self, message: Message, kit: Kit, parent: QWidget) -> None:
        super().__init__(parent)
        self.message = message
        self.buttons: dict[MessageAction, ActionButton] = {}
        self._is_reply = message.role is Role.ASSISTANT
        self._has_words = False
        self._is_revealed = False
        self._actions = frozenset({MessageAction.COPY})
        self._version = (1, 1)
        self._copied: QTimer | None = None
        self._mark = StateMark(kit.theme, self)
        self._state = ElidedFigures(self)
        self._state.setFixedHeight(_HEIGHT_PX)
        self._count: QLabel | None = None
        words = QHBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._mark)
        words.addWidget(self._state, 1)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(2)
        self._buttons.setAlignment(Qt.AlignmentFlag.AlignTrailing)
        self._layout = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._layout.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)
        self._layout.addLayout(words, 1)
        self._layout.setAlignment(words, Qt.AlignmentFlag.AlignTop)
        self._layout.addLayout(self._buttons)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(
            tr("What to do with this reply")
            if self._is_reply
            else tr("What to do with this prompt")
        )
        self.refresh()

    def show_actions(self, actions: frozenset[MessageAction], version: tuple[int, int]) -> None:
        """Offer these; `version` is (its number from 1, how many there are)."""
        if (actions, version) == (self._actions, self._version):
            return
        self._actions, self._version = actions, version
        if version[1] > 1:
            self.make_buttons()  # how many versions there are is always seen
        self._dress_buttons()

    def refresh(self) -> None:
        """Say how the message stands now."""
        if not self._is_reply:
            self._mark.hide()
            return
        words = describe_state(self.message)
        text = "" if self.message.status.is_alive else words.text  # the strip has the words
        self._has_words = bool(text) or words.mark is not Mark.NONE
        self._mark.show_state(words)
        self._state.setContentsMargins(0 if words.mark is Mark.NONE else 4, 0, 0, 0)
        if self._state.text() != text:
            self._state.setText(text)
            self._state.setToolTip(details(self.message))
        name = _LABEL_OF_TONE[words.tone]
        dress(self._state, name)
        if self.buttons:
            self.buttons[MessageAction.COPY].setEnabled(bool(self.message.text))

    def set_revealed(self, *, is_revealed: bool) -> None:
        """Let the buttons be seen, or leave them to the keyboard alone."""
        if is_revealed != self._is_revealed:
            self._is_revealed = is_revealed
            if is_revealed:
                self.make_buttons()
            for button in self.buttons.values():
                button.update()

    @property
    def shows_buttons(self) -> bool:
        """Whether the buttons are to be seen now."""
        return self._is_revealed or any(button.hasFocus() for button in self.buttons.values())

    def take_focus(self) -> None:
        """Put the keyboard on the first button."""
        self.make_buttons()
        if stops := self._stops():
            stops[0].setFocus(Qt.FocusReason.TabFocusReason)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.take_focus()

    def show_copied(self) -> None:
        """Say for a moment that it was copied."""
        self.make_buttons()
        self.buttons[MessageAction.COPY].set_icon_name("check")
        if self._copied is None:
            self._copied = QTimer(self)
            self._copied.setSingleShot(True)
            self._copied.setInterval(_COPIED_MS)
            self._copied.timeout.connect(
                lambda: self.buttons[MessageAction.COPY].set_icon_name("copy")
            )
        self._copied.start()

    def tell(self, action: MessageAction, words: str) -> None:
        """Say at a button why it does nothing now."""
        button = self.buttons[action]
        QToolTip.showText(button.mapToGlobal(QPoint(0, button.height())), words, button)
        say(button, words)

    def make_buttons(self) -> None:
        """Have the buttons; most messages are never acted upon, and eight buttons take longer than their text."""
        if self.buttons:
            return
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        for action, icon_name, label in _BUTTONS:
            self._add(action, icon_name, tr(label))
        self._add(MessageAction.PREVIOUS, "chevron-left", tr("Previous version"))
        self._count = QLabel(self)
        self._count.setObjectName("secondary")
        self._buttons.addWidget(self._count)
        self._add(MessageAction.NEXT, "chevron-right", tr("Next version"))
        self._dress_buttons()
        self.refresh()

    def _dress_buttons(self) -> None:
        if self._count is None:
            return
        number, total = self._version
        for action, button in self.buttons.items():
            if action in (MessageAction.PREVIOUS, MessageAction.NEXT):
                button.setVisible(total > 1)
            else:
                button.setVisible(action in self._actions)
        before, after = MessageAction.PREVIOUS, MessageAction.NEXT
        self.buttons[before].setEnabled(number > 1 and before in self._actions)
        self.buttons[after].setEnabled(number < total and after in self._actions)
        self._count.setVisible(total > 1)
        self._count.setText(f"{number}/{total}")
        self._count.setAccessibleName(
            tr("Version {number} of {total}").format(number=number, total=total)
        )
        self._set_tab_stop(None)

    def heightForWidth(self, width: int) -> int:
        return 2 * _HEIGHT_PX if self._takes_two_lines(width) else _HEIGHT_PX

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        direction = QBoxLayout.Direction
        is_two = self._takes_two_lines(event.size().width())
        self._layout.setDirection(direction.TopToBottom if is_two else direction.LeftToRight)
        self._buttons.setSpacing(0 if is_two else 2)
        leading, trailing = Qt.AlignmentFlag.AlignLeading, Qt.AlignmentFlag.AlignTrailing
        self._buttons.setAlignment(leading if is_two else trailing)

    def _takes_two_lines(self, width: int) -> bool:
        return self._has_words and width < _NARROW_PX

    def on_key(self, button: ActionButton, event: QKeyEvent) -> bool:
        """Arrow keys move among the buttons, and to other messages; whether the key was one of these."""
        key, stops = event.key(), self._stops()
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            step = 1 if (key == Qt.Key.Key_Right) is self.isLeftToRight() else -1
            place = (stops.index(button) + step) % len(stops)
            stops[place].setFocus(Qt.FocusReason.TabFocusReason)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.neighbour_wanted.emit(1 if key == Qt.Key.Key_Down else -1)
        else:
            return False
        return True

    def on_focus(self, button: ActionButton) -> None:
        """The keyboard has come to a button, or gone: all of them are seen, or none."""
        if button.hasFocus():
            self._set_tab_stop(button)
        for other in self.buttons.values():
            other.update()

    def _add(self, action: MessageAction, icon_name: str, label: str) -> None:
        button = ActionButton(icon_name, label, self)
        button.is_always_seen = action in (MessageAction.PREVIOUS, MessageAction.NEXT)
        button.clicked.connect(lambda: self.wanted.emit(action))
        self._buttons.addWidget(button)
        self.buttons[action] = button

    def _stops(self) -> list[ActionButton]:
        return [b for b in self.buttons.values() if not b.isHidden() and b.isEnabled()]

    def _set_tab_stop(self, stop: ActionButton | None) -> None:
        stops = self._stops()
        stop = stop or (stops[0] if stops else None)
        for button in self.buttons.values():
            tab, click = Qt.FocusPolicy.StrongFocus, Qt.FocusPolicy.ClickFocus
            button.setFocusPolicy(tab if button is stop else click)


class ActionButton(IconButton):
    """A button of a foot: there for the keyboard and the screen reader also while it is not seen."""

    def __init__(self, icon_name: str, label: str, foot: FootView) -> None:
        super().__init__(icon_name, label, foot)
        self.setObjectName("small")
        self.is_always_seen = False
        self._foot = foot

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.is_always_seen or self._foot.shows_buttons:
            super().paintEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._foot.on_key(self, event):
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._foot.on_focus(self)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._foot.on_focus(self)
