"""The line above a model's thinking: how long it took, and a click that folds or opens it. GUI thread; no services."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from studio.views.icons import palette_icon
from studio.views.words import elapsed, tr

_MOMENT_S = 0.5


class ThoughtHead(QWidget):
    """`toggled` asks to fold or to open; the owner says with `show_state` what is so now."""

    toggled = Signal()
    text_edit = None

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.button = QToolButton(self)
        self.button.setObjectName("thought")
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setIconSize(QSize(16, 16))
        self.button.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # the words first
        self.button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.button.clicked.connect(self.toggled)
        self._is_open = True
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.button)
        layout.addStretch(1)

    def show_state(self, seconds: float | None, *, is_open: bool, is_running: bool) -> None:
        """Say whether the model still thinks, for how long it has, and whether that is to be seen."""
        if is_running:
            words = tr("Thinking")
            words = f"{words} · {elapsed(seconds)}" if seconds is not None else words
        elif seconds is None or seconds < _MOMENT_S:
            words = tr("Thought for a moment")
        else:
            words = tr("Thought for {time}").format(time=elapsed(seconds))
        if self.button.text() != words:
            self.button.setText(words)
        self.button.setAccessibleName(words)
        self.button.setAccessibleDescription(
            tr("Fold the thinking") if is_open else tr("Show the thinking")
        )
        self.button.setToolTip(self.button.accessibleDescription())
        self._is_open = is_open
        self._draw()

    def heightForWidth(self, _width: int) -> int:
        return self.button.sizeHint().height()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def _draw(self) -> None:
        name = "chevron-down" if self._is_open else "chevron-right"
        self.button.setIcon(palette_icon(name, self.button.palette()))
