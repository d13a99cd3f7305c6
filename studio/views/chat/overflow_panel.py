"""What can be done with a prompt for which there is no room: asked before it is sent, with the counts. GUI thread.

It only says what is wanted; must not import other services than for their types.
"""

from __future__ import annotations

from PySide6.QtCore import Signal, SignalInstance
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from studio.services.context_service import ContextUse, CutPlan
from studio.views.flow_layout import FlowLayout
from studio.views.words import count, tokens, tr

_GAP_PX = 8


class OverflowPanel(QFrame):
    """Hidden until `ask`."""

    leave_out_wanted = Signal()
    summarise_wanted = Signal()
    raise_wanted = Signal()
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
        self.cancel = self._button(self.cancelled)
        self.cancel.setText(tr("Change the message"))
        buttons = QWidget(self)
        row = FlowLayout(buttons, _GAP_PX)
        for button in (self.leave_out, self.summarise, self.raise_limit, self.cancel):
            row.addWidget(button)
        self._column = layout = QVBoxLayout(self)
        layout.setContentsMargins(14, 12, 14, 12)
        layout.setSpacing(8)
        layout.addWidget(self._words)
        layout.addWidget(self._why)
        layout.addWidget(buttons)
        self.hide()

    def ask(self, use: ContextUse, plan: CutPlan | None, *, pool_tokens: int | None) -> None:
        """Offer what is possible. `pool_tokens` is what the model could be loaded with; None: it reads no more."""
        words = tr("This would be {tokens}; the model reads {window} at once.")
        self._words.setText(
            words.format(tokens=tokens(use.tokens), window=count(use.window_tokens))
        )
        self.leave_out.setVisible(plan is not None)
        self.summarise.setVisible(plan is not None)
        if plan is not None:
            leave = tr("Leave out the oldest {number} messages ({tokens})")
            self.leave_out.setText(
                leave.format(number=count(plan.num_messages), tokens=tokens(plan.tokens))
            )
            self.summarise.setText(tr("Sum them up first"))
        self.raise_limit.setVisible(pool_tokens is not None)
        if pool_tokens is not None:
            more = tr("Make room for {tokens} and load again")
            self.raise_limit.setText(more.format(tokens=tokens(pool_tokens)))
            self.raise_limit.setToolTip(tr("Replies that run are parked meanwhile, and go on"))
        self._why.setText(self._reason(plan, pool_tokens))
        self._why.setVisible(bool(self._why.text()))
        self._keep_height()
        self.show()
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

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._keep_height()

    def _keep_height(self) -> None:
        """All choices are seen, however low the pane: what is above gives way."""
        self.setMinimumHeight(self._column.heightForWidth(self.width()))

    @property
    def _buttons(self) -> tuple[QPushButton, ...]:
        return self.leave_out, self.summarise, self.raise_limit, self.cancel

    def _button(self, wanted: SignalInstance) -> QPushButton:
        button = QPushButton(self)
        button.clicked.connect(wanted)
        return button

    @staticmethod
    def _reason(plan: CutPlan | None, pool_tokens: int | None) -> str:
        if plan is None and pool_tokens is not None:
            return tr("The message alone is too long for that.")
        if plan is None:
            return tr("The message alone is too long; shorten it.")
        return tr(
            "Messages that are left out stay in the chat; the model is not given them any more."
        )
