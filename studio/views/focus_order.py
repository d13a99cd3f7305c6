"""The keyboard's way through a window: where Tab leads, Enter on a button, and where a lost focus goes. GUI thread.

Tab goes through everything on screen in reading order, however late a widget was made. Qt's own order is that of
creation, which for a transcript whose messages come and go is no order at all. Must not import services.
"""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QAbstractButton, QScrollArea, QWidget

_MARGIN_PX = 24


def move_focus(window: QWidget, *, forward: bool) -> bool:
    """Do what Tab (or Shift+Tab) does: where it leads has the focus and can be seen. False if nothing takes it."""
    stop = _next_tab_stop(window, window.focusWidget(), forward=forward)
    if stop is None:
        return False
    reason = Qt.FocusReason
    stop.setFocus(reason.TabFocusReason if forward else reason.BacktabFocusReason)
    _bring_into_sight(stop)
    return True


def come_home(window: QWidget, home: QWidget | None = None) -> bool:
    """Take the focus from a widget that was hidden or switched off, to `home`, or to what is near; False: it has none.

    Qt would do what Tab does, though nobody pressed it: the next Space or Enter set off whatever button comes next.
    """
    lost = window.focusWidget()
    if lost is None or (lost.isEnabled() and lost.isVisibleTo(window)):
        return False
    if home is None or not (home.isEnabled() and home.isVisibleTo(window)):
        home = _near(window, lost)
    if home is None:
        lost.clearFocus()
    else:
        home.setFocus(Qt.FocusReason.OtherFocusReason)
    return True


def _near(window: QWidget, lost: QWidget) -> QWidget | None:
    """What takes the keyboard next before a widget, or else after it, and is no button.

    Not by QWidget.previousInFocusChain: PySide takes what that returns for a part of the widget, and forgets it as
    deleted when the widget goes.
    """
    before, is_past = None, False
    for one in _in_order(window):
        if one is lost:
            is_past = True
        elif _takes_tab(one) and one.isVisibleTo(window) and not isinstance(one, QAbstractButton):
            if is_past:
                return before or one
            before = one
    return before


def _next_tab_stop(window: QWidget, current: QWidget | None, *, forward: bool) -> QWidget | None:
    """The widget that Tab (or Shift+Tab) leads to from `current`, around the ends; None if nothing takes the focus."""
    stops = list(_tab_stops(window))
    if not stops:
        return None
    if current not in stops:
        return stops[0] if forward else stops[-1]
    return stops[(stops.index(current) + (1 if forward else -1)) % len(stops)]


def _bring_into_sight(widget: QWidget) -> None:
    """Scroll whatever the widget lies in until it can be seen."""
    area = widget.parentWidget()
    while area is not None:
        if isinstance(area, QScrollArea):
            area.ensureWidgetVisible(widget, 0, _MARGIN_PX)
        area = area.parentWidget()


def press_with_enter(focused: QWidget | None, event: QKeyEvent) -> bool:
    """Let Enter do what Space does on a button, which Qt leaves to dialogs; whether it did."""
    is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
    if not is_enter or event.isAutoRepeat() or not isinstance(focused, QAbstractButton):
        return False
    focused.click()
    return True


def _tab_stops(widget: QWidget) -> Iterator[QWidget]:
    """What Tab leads to, in reading order."""
    return (one for one in _in_order(widget, is_seen=True) if _takes_tab(one))


def _takes_tab(widget: QWidget) -> bool:
    takes_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus == Qt.FocusPolicy.TabFocus
    return takes_tab and widget.isEnabled() and widget.focusProxy() is None


def _in_order(widget: QWidget, *, is_seen: bool = False) -> Iterator[QWidget]:
    """Depth first, children from the top to the bottom and, on one line, from left to right; all, or those seen."""
    yield widget
    children = [
        child
        for child in widget.children()
        if isinstance(child, QWidget)
        and not child.isWindow()
        and (child.isVisible() or not is_seen)
    ]
    for child in sorted(children, key=lambda child: (child.y(), child.x())):
        yield from _in_order(child, is_seen=is_seen)
