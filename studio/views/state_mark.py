"""Draws the shape of a state: in the list of chats and under a reply, the same. GUI thread.

Two shapes move where they stand alone, if the desktop wants motion at all: the dot of a reply that is being written
breathes, and the ring of one that comes back turns once.
"""

from __future__ import annotations

import math
from dataclasses import replace

from PySide6.QtCore import QElapsedTimer, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHideEvent, QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import QStyle, QWidget

from studio.views.status_words import Mark, StatusWords, Tone
from studio.views.theme import Colors, Theme

MARK_PX = 12
_BREATH_MS = 1600
_TURN_MS = 600
_SHALLOWEST = 0.5
"""How much of a dot's colour is left when it is at its palest."""
_TURN = 16 * 360
_TOP = 16 * 90


def tone_color(tone: Tone, colors: Colors) -> QColor:
    """The text colour of a tone."""
    match tone:
        case Tone.QUIET:
            return colors.secondary
        case Tone.ACTIVE:
            return colors.accent
        case Tone.WAITING:
            return colors.waiting
        case Tone.FAILED:
            return colors.failed


def paint_mark(
    painter: QPainter, box: QRectF, words: StatusWords, colors: Colors, *, moment_ms: int = 0
) -> None:
    """Draw the mark of a state into `box`, a square of MARK_PX, as it is so long after it began to move."""
    painter.save()
    _move(painter, box, words.mark, moment_ms)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    color = tone_color(words.tone, colors)
    ring = box.adjusted(1.5, 1.5, -1.5, -1.5)
    painter.setPen(QPen(color, 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    match words.mark:
        case Mark.NONE:
            pass
        case Mark.DOT:
            _fill(painter, color)
            painter.drawEllipse(box.adjusted(2, 2, -2, -2))
        case Mark.PIE:
            painter.drawArc(ring, _TOP, -round(_TURN * words.progress))
            painter.setPen(QPen(colors.track, 1.6))
            painter.drawArc(ring, _TOP, round(_TURN * (1 - words.progress)))
        case Mark.DOTS:
            _fill(painter, color)
            for left in (0.5, 4.7, 8.9):
                painter.drawEllipse(QRectF(box.left() + left, box.center().y() - 1.3, 2.6, 2.6))
        case Mark.BARS:
            _fill(painter, color)
            for left in (2.0, 7.0):
                bar = QRectF(box.left() + left, box.top() + 1.5, 3, box.height() - 3)
                painter.drawRoundedRect(bar, 1, 1)
        case Mark.HAND:
            _draw_hand(painter, box)
        case Mark.CHECK:
            _draw_check(painter, box)
        case Mark.TURN:
            _draw_turn(painter, ring)
        case Mark.RING_DOT:
            painter.drawEllipse(ring)
            _fill(painter, color)
            painter.drawEllipse(box.adjusted(4, 4, -4, -4))
        case Mark.SQUARE:
            _fill(painter, color)
            painter.drawRoundedRect(box.adjusted(2.5, 2.5, -2.5, -2.5), 1, 1)
        case Mark.BROKEN_RING:
            painter.drawArc(ring, 16 * 70, _TURN * 5 // 12)
            painter.drawArc(ring, 16 * 250, _TURN * 5 // 12)
        case Mark.CROSS:
            cross = box.adjusted(2.5, 2.5, -2.5, -2.5)
            painter.drawLine(cross.topLeft(), cross.bottomRight())
            painter.drawLine(cross.topRight(), cross.bottomLeft())
    painter.restore()


def _draw_turn(painter: QPainter, ring: QRectF) -> None:
    painter.drawArc(ring, 16 * 60, _TURN * 3 // 4)
    tip = ring.center() + QPointF(ring.width() / 2, 0)
    painter.drawLine(tip, tip + QPointF(-2.6, -1.2))
    painter.drawLine(tip, tip + QPointF(1.0, -2.8))


def _move(painter: QPainter, box: QRectF, mark: Mark, moment_ms: int) -> None:
    if mark is Mark.DOT:
        depth = (1 - math.cos(math.tau * moment_ms / _BREATH_MS)) / 2
        painter.setOpacity(1 - (1 - _SHALLOWEST) * depth)
    elif mark is Mark.TURN:
        painter.translate(box.center())
        painter.rotate(360 * min(moment_ms / _TURN_MS, 1.0))
        painter.translate(-box.center())


def may_move(widget: QWidget) -> bool:
    """Whether the desktop wants things to move."""
    duration = QStyle.StyleHint.SH_Widget_Animation_Duration
    return widget.style().styleHint(duration, None, widget) > 0


def _draw_hand(painter: QPainter, box: QRectF) -> None:
    """A raised hand: four fingers, the thumb, and the palm that joins them."""
    painter.setPen(QPen(painter.pen().color(), 1.5, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    left, top = box.left(), box.top()
    for x, tip in ((3.6, 2.8), (5.6, 1.2), (7.6, 1.6), (9.6, 3.4)):
        painter.drawLine(QPointF(left + x, top + tip), QPointF(left + x, top + 7.4))
    painter.drawLine(QPointF(left + 1.4, top + 6.6), QPointF(left + 3.8, top + 9.2))
    painter.setBrush(painter.pen().color())
    painter.drawRoundedRect(QRectF(left + 3.6, top + 6.8, 6.0, 4.0), 2, 2)


def _draw_check(painter: QPainter, box: QRectF) -> None:
    corner = box.center() + QPointF(-1.4, 3.0)
    painter.drawLine(corner, corner + QPointF(-2.8, -2.9))
    painter.drawLine(corner, corner + QPointF(5.2, -6.2))


def _fill(painter: QPainter, color: QColor) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)


class StateMark(QWidget):
    """A mark as a widget, hidden while it is NONE; its tool tip and its accessible name are the words."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._words = StatusWords(Mark.NONE, "")
        self.is_moving = False
        self._since = QElapsedTimer()
        self.setFixedSize(MARK_PX, MARK_PX)

    def show_state(self, words: StatusWords) -> None:
        if words == self._words:
            return
        before, self._words = self._words, words
        self.setToolTip(words.text)
        self.setAccessibleName(words.text)
        self.setVisible(words.mark is not Mark.NONE)
        if before.mark is not words.mark:
            self._begin()
        if replace(before, text=words.text) != words:
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(MARK_PX, MARK_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        moment_ms = self._since.elapsed() if self.is_moving else 0
        if self._words.mark is Mark.TURN and moment_ms >= _TURN_MS:
            self._stand_still()  # it turns once
        colors = self._theme.colors
        paint_mark(painter, QRectF(self.rect()), self._words, colors, moment_ms=moment_ms)
        painter.end()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._begin()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._stand_still()

    def _begin(self) -> None:
        """Move from the beginning, or not at all."""
        self._stand_still()
        if self._words.mark in (Mark.DOT, Mark.TURN) and self.isVisible() and may_move(self):
            self.is_moving = True
            self._since.start()
            self._theme.pulse.move(self)

    def _stand_still(self) -> None:
        self.is_moving = False
        self._theme.pulse.rest(self)
