"""One question before something that cannot be undone. GUI thread; never waits in a loop of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtWidgets import QGridLayout, QMessageBox, QSpacerItem, QWidget

from studio.views.words import tr

_MARGINS = (24, 20, 24, 20)
_LEAST_PX = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, what it means, and the word on the button that does it."""

    text: str
    detail: str
    do: str


def confirm(question: Question, on_yes: Callable[[], None], parent: QWidget) -> QMessageBox:
    """Ask, and call `on_yes` if the answer is yes. Escape and Enter both mean no."""
    box = QMessageBox(parent)
    box.setText(question.text)
    box.setInformativeText(question.detail)
    yes = box.addButton(question.do, QMessageBox.ButtonRole.DestructiveRole)
    no = box.addButton(tr("Cancel"), QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(no)
    box.setEscapeButton(no)
    yes.clicked.connect(on_yes)
    box.finished.connect(box.deleteLater)
    give_room(box)
    box.open()
    return box


def give_room(box: QMessageBox) -> None:
    """Words on the edge of the buttons, where Qt keeps a column for an icon that is not there; and lines of a length
    that can be read, however short the title is."""
    grid = box.layout()
    assert isinstance(grid, QGridLayout)
    if isinstance(gap := grid.itemAtPosition(0, 0), QSpacerItem):
        gap.changeSize(0, 0)
        grid.setHorizontalSpacing(0)
    grid.setColumnStretch(1, 1)  # where the buttons are wider than the words
    grid.setContentsMargins(*_MARGINS)
    grid.addItem(QSpacerItem(_LEAST_PX, 0), grid.rowCount(), 1)
