"""The one soft shadow, for what floats over the window. GUI thread. Must not import services."""

from __future__ import annotations

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QGraphicsDropShadowEffect, QWidget

_BLUR_PX = 24
_DOWN_PX = 4
_COLOR = (0, 0, 0, 60)


def cast_shadow(widget: QWidget) -> QGraphicsDropShadowEffect:
    """Let a widget lie above its neighbours; the shadow may be switched off."""
    shadow = QGraphicsDropShadowEffect(widget)
    shadow.setBlurRadius(_BLUR_PX)
    shadow.setOffset(0, _DOWN_PX)
    shadow.setColor(QColor(*_COLOR))
    widget.setGraphicsEffect(shadow)
    return shadow
