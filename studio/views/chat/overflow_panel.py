"""What can be done with a prompt for which there is no room: asked before it is sent, with the counts. GUI thread.

It only says what is wanted; must not import other services than for their types.
"""

from __future__ import annotations

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from studio.services.context_service import ContextUse, CutPlan
from studio.views.chat.bounded_area import BoundedArea
from studio.views.flow_layout import FlowLayout
from studio.views.words import count, tokens, tr
from studio.views.wrapped_button import WrappedButton

_GAP_PX = 8


def too_long_words(use: ContextUse) -> str:
    """How long a prompt would be, and what has no room for it."""
    words = tr("This would be {tokens}; the model reads {window} at once.")
    if use.is_pool_limit:
        words = tr("This would be {tokens}; the pool has room for {window}.")
    told = words.format(tokens=tokens(use.tokens), window=count(use.window_tokens))
    if not use.tools_tokens:
        return told
    share = tr("The tools of this chat take {tokens} of them.")
    return f"{told} {share.format(tokens=count(use.tools_tokens))}"


class OverflowPanel(QFrame):
    """Hidden until `ask`."""

    leave_out_wanted = Signal()
    summarise_wanted = Signal()
    raise_wanted = Signal()
    tools_off_wanted = Signal()
    tools_wanted = Signal()
    cancelled = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("overflow")
        self._words = QLabel(self)
        self._words.setWordWrap(True)
        self._why = QLabel(self)
        self._why.setObjectName("secondary")
        self._why.setWordWrap(True)
        self.leave_out = self._button(self.leave_out_wanted)
        self.summarise = self._button(self.summarise_wanted)
        self.raise_limit = self._button(self.raise_wanted)
        self.tools_off = self._button(self.tools_off_wanted)
        self.tools_off.set_words(tr("Switch the tools off and send"))
        self.tools_off.setToolTip(tr("The chat's settings switch them on again"))
        self.tools = self._button(self.tools_wanted)
        self.tools.set_words(tr("Choose the tools"))
        self.cancel = self._button(self.cancelled)
        self.cancel.set_words(tr("Change the message"))
        inside = QWidget()
        buttons = QWidget(inside)
        row = FlowLayout(buttons, _GAP_PX)
        for button in self._buttons:
            row.addWidget(button)
        column = QVBoxLayout(inside)
        column.setContentsMargins(14, 12, 14, 12)
        column.setSpacing(8)
        column.addWidget(self._words)
        column.addWidget(self._why)
        column.addWidget(buttons)
        self.area = BoundedArea(tr("What can be done"), inside, self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.area)
        self.hide()

    def ask(self, use: ContextUse, plan: CutPlan | None, *, pool_tokens: int | None) -> None:
        """Offer what is possible. `pool_tokens` is what the model could be loaded with; None: it reads no more."""
        self._words.setText(too_long_words(use))
        self.leave_out.setVisible(plan is not None)
        self.summarise.setVisible(plan is not None)
        if plan is not None:
            leave = tr("Leave out the oldest {number} messages and send {tokens}")
            self.leave_out.set_words(
                leave.format(number=count(plan.num_messages), tokens=tokens(plan.tokens))
            )
            self.summarise.set_words(tr("Sum them up first"))
        self.raise_limit.setVisible(pool_tokens is not None)
        if pool_tokens is not None:
            more = tr("Make room for {tokens} and load again")
            self.raise_limit.set_words(more.format(tokens=tokens(pool_tokens)))
            self.raise_limit.setToolTip(tr("Replies that run are parked meanwhile, and go on"))
        self.tools_off.setVisible(use.tools_tokens > 0 and use.fits_without_tools)
        self.tools.setVisible(use.tools_tokens > 0)
        self._why.setText(self._reason(use, plan, pool_tokens))
        self._why.setVisible(bool(self._why.text()))
        self.show()

    def take_focus(self) -> None:
        """Put the keyboard on the first choice."""
        first = next(b for b in self._buttons if not b.isHidden() and b.isEnabled())
        first.setFocus()

    def show_working(self) -> None:
        """A choice was taken that takes a while."""
        self._why.setText(tr("Summing up what was said"))
        self._why.show()
        for button in self._buttons[:-1]:
            button.setEnabled(False)

    def close_panel(self) -> None:
        """There is nothing to choose any more."""
        self.hide()
        for button in self._buttons:
            button.setEnabled(True)

    @property
    def _buttons(self) -> tuple[WrappedButton, ...]:
        return (
            self.tools_off,
            self.tools,
            self.leave_out,
            self.summarise,
            self.raise_limit,
            self.cancel,
        )

    def _button(self, wanted: SignalInstance) -> WrappedButton:
        button = WrappedButton(self)
        button.clicked.connect(wanted)
        return button

    @staticmethod
    def _reason(use: ContextUse, plan: CutPlan | None, pool_tokens: int | None) -> str:
        reason = tr("The message alone is too long for that.")
        if use.tools_tokens and use.fits_without_tools:
            reason = tr("There is room for all of it without them.")
        elif plan is None and pool_tokens is None:
            return tr("The message alone is too long; shorten it.")
        if plan is not None:
            reason = tr(
                "Messages that are left out stay in the chat; the model is not given them any more."
            )
        if pool_tokens is None:
            return reason
        return f"{reason} {tr('More room stays set for this model.')}"
