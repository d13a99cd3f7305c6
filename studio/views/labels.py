"""Labels as they are most often wanted. GUI thread. Must not import services."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QWidget


def dress(widget: QWidget, name: str) -> None:
    """Have the style sheet's look for another name; cheap where it has it already."""
    if widget.objectName() != name:
        widget.setObjectName(name)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


def line(text: str, name: str, parent: QWidget) -> QLabel:
    """A wrapped line of plain text; `name` dresses it: title, secondary, waiting, failed."""
    label = QLabel(text, parent)
    label.setObjectName(name)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    return label


def hairline(parent: QWidget) -> QFrame:
    """Between what scrolls and what stands below it: what is cut there is seen to go on."""
    frame = QFrame(parent)
    frame.setObjectName("hairline")
    frame.setFixedHeight(1)
    return frame
