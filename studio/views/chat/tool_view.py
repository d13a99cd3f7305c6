"""A call of a tool in the transcript: what is called with what, how it stands, and its result, folded at first.

GUI thread; must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from studio.models.chat import Message, MessageStatus
from studio.models.tool_use import ToolUse, ToolUseState
from studio.views.chat.kit import Kit
from studio.views.elided_label import ElidedLabel
from studio.views.icon_button import IconButton
from studio.views.icons import palette_icon
from studio.views.labels import dress, line
from studio.views.state_mark import StateMark
from studio.views.status_words import Tone
from studio.views.tool_words import describe_use, readable_arguments, use_title
from studio.views.words import count, tr

_MOST_SHOWN_CHARS = 6_000
_LABEL_OF_TONE = {
    Tone.QUIET: "secondary",
    Tone.ACTIVE: "secondary",
    Tone.WAITING: "waiting",
    Tone.FAILED: "failed",
}


class ToolView(QFrame):
    """One call of a message, by its place among the calls. `grown` says that its height is another one."""

    grown = Signal()
    text_edit = None

    def __init__(self, message: Message, place: int, kit: Kit, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("toolUse")
        self._message = message
        self._place = place
        self._shown: tuple[ToolUse, bool] | None = None
        self._is_open = False
        self._mark = StateMark(kit.theme, self)
        self._title = ElidedLabel(self)
        self._title.setObjectName("toolTitle")
        self._state = ElidedLabel(self)
        self._state.setAlignment(Qt.AlignmentFlag.AlignTrailing | Qt.AlignmentFlag.AlignVCenter)
        self._arguments = _text(kit, self)
        self._result = _text(kit, self)
        self.fold_button = QToolButton(self)
        self.fold_button.setObjectName("thought")
        self.fold_button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.fold_button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.fold_button.clicked.connect(self._toggle)
        self.copy_button = IconButton("copy", tr("Copy the result"), self)
        self.copy_button.setObjectName("small")
        self.copy_button.clicked.connect(
            lambda: QGuiApplication.clipboard().setText(self._use.result)
        )
        self._lay_out()
        self.refresh()

    @property
    def _use(self) -> ToolUse:
        return self._message.calls[self._place]

    def refresh(self) -> None:
        """Say how the call stands now."""
        if self._place >= len(self._message.calls):
            return
        use, is_written = self._use, self._message.status is not MessageStatus.WRITING
        if (use, is_written) == self._shown:
            return
        self._shown = (use, is_written)
        words = describe_use(use, is_written=is_written)
        self._mark.show_state(words)
        self._title.set_text(use_title(use))
        self._state.set_text(words.text)
        name = _LABEL_OF_TONE[words.tone]
        dress(self._state, name)
        arguments = readable_arguments(use.arguments)
        self._arguments.setText(arguments)
        self._arguments.setVisible(bool(arguments))
        self.setAccessibleName(
            tr("Call of a tool: {tool}, {state}").format(tool=use_title(use), state=words.text)
        )
        self.setAccessibleDescription(arguments)
        self._show_result(use)

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        assert layout is not None
        if layout.hasHeightForWidth():
            return layout.totalHeightForWidth(width)
        return layout.totalSizeHint().height()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw_fold()

    def _show_result(self, use: ToolUse) -> None:
        has_result = bool(use.result) and not use.state.is_open
        self.fold_button.setVisible(has_result)
        self.copy_button.setVisible(has_result and self._is_open)
        self._result.setVisible(has_result and self._is_open)
        label = tr("Your word") if use.state is ToolUseState.DENIED else tr("Result")
        self.fold_button.setText(label)
        self.fold_button.setAccessibleName(label)
        self.fold_button.setAccessibleDescription(
            tr("Fold the result") if self._is_open else tr("Show the result")
        )
        if has_result and self._is_open:
            self._result.setText(_shortened(use.result))
        self._draw_fold()

    def _toggle(self) -> None:
        self._is_open = not self._is_open
        self._show_result(self._use)
        self.grown.emit()

    def _draw_fold(self) -> None:
        name = "chevron-down" if self._is_open else "chevron-right"
        self.fold_button.setIcon(palette_icon(name, self.fold_button.palette()))

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self._mark)
        head.addWidget(self._title, 1)
        head.addWidget(self._state, 1)
        foot = QHBoxLayout()
        foot.setSpacing(4)
        foot.addWidget(self.fold_button)
        foot.addWidget(self.copy_button)
        foot.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(4)
        layout.addLayout(head)
        layout.addWidget(self._arguments)
        layout.addLayout(foot)
        layout.addWidget(self._result)


def _text(kit: Kit, parent: QWidget) -> QLabel:
    label = line("", "toolText", parent)
    label.setFont(kit.theme.code_font())
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return label


def _shortened(text: str) -> str:
    if len(text) <= _MOST_SHOWN_CHARS:
        return text
    more = tr("{count} characters more; copy the result to see them").format(
        count=count(len(text) - _MOST_SHOWN_CHARS)
    )
    return f"{text[:_MOST_SHOWN_CHARS]}…\n\n{more}"
