"""Paints a piece of the pool: in its owner's hue, striped where shared, faint where free. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPolygonF

from studio.views.monitor.segments import Kind, Segment
from studio.views.theme import Theme

_STRIPE_PX = 4.0
_KEPT_OPACITY = 0.3


def paint_piece(painter: QPainter, box: QRectF, segment: Segment, theme: Theme) -> None:
    """Fill a box; stripes begin at the same places in neighbouring boxes, so that they run on."""
    match segment.kind:
        case Kind.FREE:
            painter.fillRect(box, theme.colors.track)
        case Kind.KEPT:
            _fill(painter, box, theme.colors.accent)
        case Kind.MOVING:
            painter.fillRect(box, theme.colors.secondary)
        case Kind.HELD:
            colors = [theme.hues[hue] for hue in dict.fromkeys(segment.hues)]
            painter.fillRect(box, colors[0])
            if len(colors) > 1:
                _stripe(painter, box, colors)


def _fill(painter: QPainter, box: QRectF, color: QColor) -> None:
    painter.save()
    painter.setOpacity(_KEPT_OPACITY)
    painter.fillRect(box, color)
    painter.restore()


def _stripe(painter: QPainter, box: QRectF, colors: list[QColor]) -> None:
    painter.save()
    painter.setClipRect(box, Qt.ClipOperation.IntersectClip)
    painter.setPen(Qt.PenStyle.NoPen)
    lean, period = box.height(), _STRIPE_PX * len(colors)
    first = (box.left() - lean) // period * period
    for place, color in enumerate(colors[1:], 1):
        painter.setBrush(color)
        left = first + place * _STRIPE_PX
        while left < box.right() + lean:
            corners = (
                QPointF(left, box.bottom()),
                QPointF(left + _STRIPE_PX, box.bottom()),
                QPointF(left + _STRIPE_PX + lean, box.top()),
                QPointF(left + lean, box.top()),
            )
            painter.drawPolygon(QPolygonF(corners))
            left += period
    painter.restore()
