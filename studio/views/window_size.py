"""How large windows are when they open, and stay: as they like to be, but no larger than the screen.

GUI thread; must not import services.
"""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication, QEvent, QSize
from PySide6.QtWidgets import QSplitter, QWidget

_LIKED = QSize(1280, 800)
_FRAME_PX = QSize(16, 48)
"""Kept free for the frame and the title bar, whose size is not known before the window is shown."""


def first_size(available: QSize, liked: QSize = _LIKED) -> QSize:
    """A window's size without its frame, in device-independent pixels, on a screen with that much room."""
    return liked.boundedTo(available - _FRAME_PX)


def fit_to_screen(window: QWidget, liked: QSize = _LIKED) -> None:
    """Give a window its first size on the screen where it will open."""
    window.resize(first_size(available(window), liked))


def reveal(part: QWidget, *, instead_of: Iterable[QWidget]) -> None:
    """Show a part of a window; where it has no room, others go, so that the window stays on the screen."""
    window = part.window()
    room = window.size().expandedTo(available(window))
    part.show()
    _settle(window)
    for other in instead_of:
        before = _lacking(window, room)
        if before.isNull() or other.isHidden():
            continue
        other.hide()
        _settle(window)
        if _lacking(window, room) == before:
            other.show()  # it did not stand in the way
            _settle(window)
    window.resize(window.size().boundedTo(room))


def toggle(part: QWidget, *, instead_of: Iterable[QWidget]) -> None:
    """Hide a part of a window, or reveal it."""
    if part.isHidden():
        reveal(part, instead_of=instead_of)
    else:
        part.hide()


def _settle(window: QWidget) -> None:
    """Have what a window needs counted anew, now; where it needs more than it has it grows."""
    for splitter in window.findChildren(QSplitter):
        splitter.refresh()  # of itself it counts later
    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
    if (layout := window.layout()) is not None:
        layout.activate()


def _lacking(window: QWidget, room: QSize) -> QSize:
    """How much more a window needs."""
    return (window.minimumSizeHint() - room).expandedTo(QSize(0, 0))


def available(window: QWidget) -> QSize:
    """How large a window may be on its screen, with its frame."""
    return window.screen().availableGeometry().size()
