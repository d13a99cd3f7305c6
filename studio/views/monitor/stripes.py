"""What a piece of the pool is filled with: its owner's hue, stripes where shared, faint where free. GUI thread."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPolygonF

from studio.views.monitor.segments import Kind, Segment
from studio.views.theme import Theme

_STRIPE_PX = 4
_KEPT_OPACITY = 0.3


def brush_of(segment: Segment, theme: Theme, scale: float) -> QBrush:
    """`scale` is the device's: stripes are drawn as fine as it can show them."""
    match segment.kind:
        case Kind.FREE:
            return QBrush(theme.colors.track)
        case Kind.KEPT:
            faint = QColor(theme.colors.accent)
            faint.setAlphaF(_KEPT_OPACITY)
            return QBrush(faint)
        case Kind.MOVING:
            return QBrush(theme.colors.secondary)
        case Kind.HELD:
            colors = tuple(theme.hues[hue].name() for hue in dict.fromkeys(segment.hues))
            return QBrush(_tile(colors, scale)) if len(colors) > 1 else QBrush(QColor(colors[0]))


@lru_cache(maxsize=64)
def _tile(colors: tuple[str, ...], scale: float) -> QImage:
    """A square that repeats in both directions, with a diagonal stripe of each colour."""
    side = _STRIPE_PX * len(colors)
    image = QImage(round(side * scale), round(side * scale), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(scale)
    image.fill(QColor(colors[0]))
    painter = QPainter(image)
    painter.setPen(Qt.PenStyle.NoPen)
    for place, color in enumerate(colors[1:], 1):
        painter.setBrush(QColor(color))
        for left in (place * _STRIPE_PX - side, place * _STRIPE_PX):
            right = left + _STRIPE_PX
            corners = (
                QPointF(left, side),
                QPointF(right, side),
                QPointF(right + side, 0),
                QPointF(left + side, 0),
            )
            painter.drawPolygon(QPolygonF(corners))
    painter.end()
    return image
