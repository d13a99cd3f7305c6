"""How large windows are when they open, and stay: as they like to be, but no larger than the screen.

GUI thread; must not import services.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget

_LIKED = QSize(1280, 800)
_FRAME_PX = QSize(16, 48)
"""Kept free for the frame and the title bar, whose size is not known before the window is shown."""


def first_size(available: QSize, liked: QSize = _LIKED) -> QSize:
    """A window's size without its frame, in device-independent pixels, on a screen with that much room."""
    return liked.boundedTo(available - _FRAME_PX)


def fit_to_screen(window: QWidget, liked: QSize = _LIKED) -> None:
    """Give a window its first size on the screen where it will open."""
    window.resize(first_size(_available(window), liked))


def make_room(window: QWidget, parts: Iterable[QWidget]) -> None:
    """Hide these parts of a window one by one, until the rest has room without growing beyond the screen."""
    room_px = max(window.width(), _available(window).width())
    for part in parts:
        if window.minimumSizeHint().width() <= room_px:
            return
        part.hide()


def _available(window: QWidget) -> QSize:
    return window.screen().availableGeometry().size()
