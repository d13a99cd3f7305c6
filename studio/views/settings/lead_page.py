"""A page of the settings whose subject has a window of its own: it says so and leads there. GUI thread.

Must not import services.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from studio.views.labels import line


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Where the settings of one group are: what is said about it, the button's words, what it opens.

    `open` is given a setting's key, or "" for none in particular.
    """

    words: str
    button: str
    open: Callable[[str], object]


class LeadPage(QWidget):
    """Nothing is set here."""

    keys: tuple[str, ...] = ()

    def __init__(self, elsewhere: Elsewhere, parent: QWidget) -> None:
        super().__init__(parent)
        self.button = QPushButton(elsewhere.button, self)
        self.button.setAutoDefault(False)
        self.button.clicked.connect(lambda: elsewhere.open(""))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(12)
        layout.addWidget(line(elsewhere.words, "body", self))
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)

    def refresh(self) -> None:
        """Nothing on it changes."""
