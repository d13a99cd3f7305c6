"""The window opens whole on small screens and at large scales."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QSplitter, QWidget

from studio.views.window_size import first_size, fit_to_screen, toggle


@pytest.mark.parametrize(
    ("available", "expected"),
    [
        (QSize(1920, 1040), QSize(1280, 800)),
        (QSize(1366, 728), QSize(1280, 680)),
        (QSize(960, 560), QSize(944, 512)),  # 1440 x 900 at 150 %, less a panel
    ],
)
def test_the_window_is_no_larger_than_the_screen(available: QSize, expected: QSize) -> None:
    assert first_size(available) == expected


def test_a_window_takes_the_room_of_its_screen(page: QWidget) -> None:
    fit_to_screen(page)
    assert page.screen().availableGeometry().contains(page.frameGeometry())


def test_what_is_opened_takes_the_place_of_something_else_where_the_screen_is_full(
    qtbot: Any,
) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    page = QWidget(window)
    row = QHBoxLayout(page)
    beside = QSplitter(page)
    parts = [QWidget(page), QWidget(page), QWidget(beside)]
    screen_px = window.screen().availableGeometry().width()
    for part in parts:
        part.setMinimumWidth(2 * screen_px // 5)
    row.addWidget(parts[0])
    row.addWidget(parts[1])
    row.addWidget(beside)
    window.setCentralWidget(page)
    parts[2].hide()
    window.resize(screen_px // 2, 300)
    window.show()
    toggle(parts[2], instead_of=parts[:2])
    assert [part.isHidden() for part in parts] == [True, False, False]
    assert window.width() <= screen_px
    toggle(parts[2], instead_of=parts[:2])
    assert [part.isHidden() for part in parts] == [True, False, True]


def test_a_large_window_is_no_larger_than_the_screen_either(page: QWidget) -> None:
    fit_to_screen(page, QSize(5000, 4000))
    assert page.screen().availableGeometry().contains(page.frameGeometry())
