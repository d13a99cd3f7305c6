"""How large the window is when it opens: as it likes to be, but no larger than the screen. GUI thread; no services."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

_LIKED = QSize(1280, 800)
_FRAME_PX = QSize(16, 48)
"""Kept free for the frame and the title bar, whose size is not known before the window is shown."""


def first_size(available: QSize) -> QSize:
    """The window's size without its frame, in device-independent pixels, on a screen with that much room."""
    return _LIKED.boundedTo(available - _FRAME_PX)


def fit_to_screen(window: QWidget) -> None:
    """Give a window its first size on the screen where it will open."""
    window.resize(first_size(window.screen().availableGeometry().size()))
