"""Tool tips of what others have written: as it is, never HTML, and in lines that a screen has room for."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent, QTextDocument
from PySide6.QtWidgets import QApplication, QToolTip, QWidget

from studio.views.elided_label import ElidedLabel
from studio.views.tips import tip_of


@pytest.mark.parametrize(
    "text", ["Plain", "<b>no</b> <img src='file:///x'> & more", "Two\nlines  with  spaces", ""]
)
def test_a_tip_says_what_was_written(qapp: QApplication, text: str) -> None:
    page = QTextDocument()
    page.setHtml(tip_of(text))
    assert page.toPlainText() == text


@pytest.mark.parametrize("text", ["x" * 5_000, "word " * 1_000])
def test_a_tip_of_thousands_of_letters_has_room_on_a_screen(qapp: QApplication, text: str) -> None:
    page = QTextDocument()
    page.setHtml(tip_of(text))
    page.setTextWidth(400)
    assert page.idealWidth() <= 400
    assert page.size().height() < 600


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_a_cut_label_tells_all_of_it_as_it_is(page: QWidget) -> None:
    label = ElidedLabel(page)
    label.set_text("<i>A title</i> that is longer than it is wide")
    event = QHelpEvent(QEvent.Type.ToolTip, QPoint(1, 1), label.mapToGlobal(QPoint(1, 1)))
    QApplication.sendEvent(label, event)
    assert QToolTip.text() == tip_of(label.text())
    QToolTip.hideText()
