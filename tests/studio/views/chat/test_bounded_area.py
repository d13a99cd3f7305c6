"""What stands above the composer is as high as its content at any width, and scrolls where it may not be."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from studio.views.chat.bounded_area import BoundedArea


def test_the_content_has_just_the_height_it_needs_after_any_resize(page: QWidget) -> None:
    inner = QWidget()
    column = QVBoxLayout(inner)
    words = QLabel("Words that need several lines where there is little room. " * 3, inner)
    words.setWordWrap(True)
    column.addWidget(words)
    column.addWidget(QPushButton("Choose", inner))
    frame = QWidget(page)
    layout = QVBoxLayout(frame)
    layout.setContentsMargins(0, 0, 0, 0)
    area = BoundedArea("What can be done", inner, frame)
    layout.addWidget(area)
    layout.addStretch(1)
    frame.show()
    for width, most_px in ((150, 1000), (400, 1000), (250, 60), (400, 1000)):
        area.set_most_px(most_px)
        frame.resize(width, 600)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        wanted = column.totalHeightForWidth(width)
        assert area.height() == min(wanted, most_px)
        assert area.findChild(QScrollArea).size() == area.size()
        assert (area.findChild(QScrollArea).verticalScrollBar().maximum() > 0) is (wanted > most_px)
