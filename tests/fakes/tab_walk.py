"""A walk through a window by Tab alone: every place the keyboard comes to is on screen, and can be seen to have it."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QRegion
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from fakes.chat_rig import until

_MOST_STEPS = 400
_LEAST_PX = 16
"""So much of a control's height is on screen at least, or all of it."""
_RING_PX = 3
"""A frame may be drawn around a control, by what it lies in."""
_Tab = Qt.FocusPolicy.TabFocus


async def faults_of(window: QWidget) -> list[str]:
    """What is wrong with the keyboard's way through a window; it begins where the focus is when the window opens."""
    window.activateWindow()
    await until(lambda: QApplication.activeWindow() is window)
    await asyncio.sleep(0)
    found: list[str] = []
    first = QApplication.focusWidget()
    if first is None or first.window() is not window:
        return ["the keyboard is nowhere when it opens"]
    seen: set[QWidget] = set()
    now: QWidget = first
    for _ in range(_MOST_STEPS):
        if now not in seen:  # once each: a text with several links would stay at its first
            found += _look(window, now)
        seen.add(now)
        QTest.keyClick(now, Qt.Key.Key_Tab)
        await asyncio.sleep(0)
        stop = QApplication.focusWidget()
        if stop is None or stop.window() is not window:
            return [*found, f"Tab leads out of the window from {told(now)}"]
        if stop is first:
            break
        now = stop
    else:
        found.append("Tab does not come around")
    return found + [f"Tab does not lead to {told(stop)}" for stop in _stops(window) - seen]


def told(widget: QWidget) -> str:
    return f"{type(widget).__name__} {widget.accessibleName() or widget.property('text')!r}"


def _stops(window: QWidget) -> set[QWidget]:
    return {
        one
        for one in window.findChildren(QWidget)
        if one.isVisible()
        and one.isEnabled()
        and one.window() is window
        and one.focusPolicy() & _Tab == _Tab
        and one.focusProxy() is None
    }


def _seen(widget: QWidget) -> QRegion:
    """What is seen of it, children that cover it included."""
    region = widget.visibleRegion()
    for child in widget.children():
        if isinstance(child, QWidget) and child.isVisible() and not child.isWindow():
            region += _seen(child).translated(child.pos())
    return region


def _look(window: QWidget, stop: QWidget) -> list[str]:
    on_screen = _seen(stop).boundingRect().height()
    if on_screen < min(stop.height(), _LEAST_PX):
        return [f"{told(stop)} is reached and not on screen"]
    around = QRect(stop.mapTo(window, QPoint(0, 0)), stop.size())
    around = around.adjusted(-_RING_PX, -_RING_PX, _RING_PX, _RING_PX)
    reached = window.grab(around).toImage()
    stop.clearFocus()
    left = window.grab(around).toImage()
    stop.setFocus(Qt.FocusReason.TabFocusReason)
    return [] if reached != left else [f"{told(stop)} does not show that it is reached"]
