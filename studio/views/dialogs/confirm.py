"""One question before something that cannot be undone. GUI thread; never waits in a loop of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtWidgets import QMessageBox, QWidget

from studio.views.words import tr


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
    box.open()
    return box
