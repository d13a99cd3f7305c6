"""Above the composer, while a tool waits for the user's word: what is to run with what, and the three answers.

GUI thread; must not import services. It never takes the keyboard by itself: somebody may be writing.
"""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from studio.models.chat import Message
from studio.models.tool_use import ToolUse, ToolUseState
from studio.views.chat.bounded_area import BoundedArea
from studio.views.flow_layout import FlowLayout
from studio.views.labels import line
from studio.views.state_mark import StateMark
from studio.views.theme import Theme
from studio.views.tool_words import describe_use, readable_arguments, use_title
from studio.views.words import count, tr
from studio.views.wrapped_button import WrappedButton

_MOST_ARGUMENTS_PX = 120


class Answer(Enum):
    """What the user says."""

    ONCE = "once"
    ALWAYS = "always"
    DENY = "deny"


class ApprovalCard(QFrame):
    """`answered` carries the call's id, the Answer and the word that goes with a no."""

    answered = Signal(str, object, str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("approval")
        self._use: ToolUse | None = None
        self._mark = StateMark(theme, self)
        self._head = line("", "title", self)
        self._count = QLabel(self)
        self._count.setObjectName("secondary")
        self._note = line("", "waiting", self)
        self._arguments = line("", "toolText", self)
        self._arguments.setFont(theme.code_font())
        self._arguments.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._area = QScrollArea(self)
        self._area.setObjectName("settingsArea")
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setWidgetResizable(True)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setWidget(self._arguments)
        self.once = self._button(tr("Allow once"), Answer.ONCE, "primarySmall")
        self.always = self._button(tr("Always in this chat"), Answer.ALWAYS)
        self.deny = self._button(tr("Don't allow"), Answer.DENY)
        self.word = QLineEdit(self)
        self.word.setPlaceholderText(tr("A word to the model with a no (optional)"))
        self.word.setAccessibleName(tr("A word to the model with a no"))
        self.word.returnPressed.connect(lambda: self._answer(Answer.DENY))
        self._lay_out()
        self.hide()

    def show_reply(self, reply: Message | None) -> None:
        """Ask about the first call of this reply that waits, or be gone."""
        asked = [] if reply is None or not reply.is_asking else _asked(reply)
        use = asked[0] if asked else None
        if use == self._use:
            self._show_count(len(asked))
            return
        had_focus = self.isAncestorOf(self.focusWidget()) if self.focusWidget() else False
        self._use = use
        self.word.clear()
        if use is not None:
            self._show_use(use)
            self._show_count(len(asked))
        self.setVisible(use is not None)
        if use is not None and had_focus:
            self.take_focus()

    def take_focus(self) -> None:
        """Bring the keyboard to the first answer."""
        self.once.setFocus(Qt.FocusReason.ShortcutFocusReason)

    @property
    def has_keyboard(self) -> bool:
        """Whether the keyboard is on one of its answers."""
        focused = QApplication.focusWidget()
        return focused is not None and self.isAncestorOf(focused)

    def _show_use(self, use: ToolUse) -> None:
        self._mark.show_state(describe_use(use))
        head = tr("Run {tool}?").format(tool=use_title(use))
        self._head.setText(head)
        self._note.setText(describe_use(use).text if use.was_interrupted else "")
        self._note.setVisible(use.was_interrupted)
        arguments = readable_arguments(use.arguments)
        self._arguments.setText(arguments)
        self._area.setVisible(bool(arguments))
        self._fit_arguments()
        self.setAccessibleName(head)
        self.setAccessibleDescription(arguments)
        for button in (self.once, self.always, self.deny):
            button.setAccessibleName(f"{button.words}: {use_title(use)}")

    def _show_count(self, number: int) -> None:
        self._count.setVisible(number > 1)
        self._count.setText(tr("{count} more").format(count=count(number - 1)))

    def _fit_arguments(self) -> None:
        width = max(self._area.viewport().width(), 200)
        wanted = self._arguments.heightForWidth(width)
        self._area.setFixedHeight(max(18, min(wanted, _MOST_ARGUMENTS_PX)))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_arguments()

    def _answer(self, answer: Answer) -> None:
        if self._use is not None:
            self.answered.emit(self._use.call_id, answer, self.word.text())

    def _button(self, text: str, answer: Answer, name: str = "") -> WrappedButton:
        button = WrappedButton(self, text)
        button.setObjectName(name)
        button.clicked.connect(lambda: self._answer(answer))
        return button

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._mark)
        head.addWidget(self._head, 1)
        head.addWidget(self._count)
        inside = QWidget()
        answers = QWidget(inside)
        buttons = FlowLayout(answers, 8)
        for button in (self.once, self.always, self.deny):
            buttons.addWidget(button)
        column = QVBoxLayout(inside)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._note)
        column.addWidget(self._area)
        column.addWidget(answers)
        column.addWidget(self.word)
        self.area = BoundedArea(tr("A tool asks"), inside, self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.area)


def _asked(reply: Message) -> list[ToolUse]:
    return [use for use in reply.calls if use.state is ToolUseState.ASKED]
