"""The window opens whole on small screens and at large scales."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

from studio.views.window_size import first_size, fit_to_screen


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
