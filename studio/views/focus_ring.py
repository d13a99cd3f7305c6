"""A line around an area that the keyboard has reached, for areas with no frame that could change colour. GUI thread.

Not shown for a click: the mouse says itself where it is. Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRectF, Qt
from PySide6.QtGui import QFocusEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QWidget

_Reason = Qt.FocusReason
_FROM_ELSEWHERE = frozenset(
    {_Reason.ActiveWindowFocusReason, _Reason.PopupFocusReason, _Reason.MenuBarFocusReason}
)
"""Another window, or a menu, was before: what was shown then is shown again."""


class FocusRing(QWidget):
    """Lies over `area`, lets the mouse through, and is seen while the area has the keyboard."""

    def __init__(self, area: QWidget) -> None:
        super().__init__(area)
        self._is_reached = True
        """By the keyboard; also what has the focus when its window opens."""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.hide()
        area.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        area = self.parentWidget()
        if watched is area and isinstance(event, QFocusEvent):
            if event.reason() not in _FROM_ELSEWHERE:
                self._is_reached = event.gotFocus() and is_by_keyboard(event)
            self.setGeometry(area.rect())
            self.raise_()
            self.setVisible(event.gotFocus() and self._is_reached)
        elif watched is area and event.type() == QEvent.Type.Resize:
            self.setGeometry(area.rect())
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().color(QPalette.ColorRole.Accent), 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        painter.end()


def is_by_keyboard(event: QFocusEvent) -> bool:
    """Whether the focus came by Tab or a shortcut."""
    reasons = (_Reason.TabFocusReason, _Reason.BacktabFocusReason, _Reason.ShortcutFocusReason)
    return event.reason() in reasons
