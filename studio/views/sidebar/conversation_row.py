"""Paints one row of the chat list: title above, state as shape and words below. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from studio.views.sidebar.conversation_model import ChatRole
from studio.views.state_mark import MARK_PX, paint_mark, tone_color
from studio.views.status_words import Mark, StatusWords
from studio.views.theme import Theme

_Index = QModelIndex | QPersistentModelIndex
_SIDE_PX = 8
_INSET_PX = 12
_PAD_PX = 8
_LINE_GAP_PX = 3
_EDGE_PX = 3
_IS_FILLED = "isFilled"


class ConversationRow(QStyledItemDelegate):
    """All rows are of one height, so that a list of thousands costs nothing to lay out."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        title = QFontMetrics(self._theme.font(self._theme.ui_px)).height()
        state = QFontMetrics(self._theme.font(self._theme.small_px)).height()
        return QSize(120, title + state + _LINE_GAP_PX + 2 * _PAD_PX + 2)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        words: StatusWords = index.data(ChatRole.WORDS)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card = option.rect.adjusted(_SIDE_PX, 1, -_SIDE_PX, -1)
        self._paint_card(painter, card, option.state, is_open=bool(index.data(ChatRole.IS_OPEN)))
        hue = index.data(ChatRole.HUE)
        if hue is not None:
            self._paint_edge(painter, card, self._theme.hues[hue])
        room = card.adjusted(_INSET_PX, _PAD_PX, -_INSET_PX, -_PAD_PX)
        is_loud = words.mark not in (Mark.NONE, Mark.SQUARE)
        font = self._theme.font(self._theme.ui_px, is_bold=is_loud and words.mark is Mark.RING_DOT)
        painter.setFont(font)
        painter.setPen(self._theme.colors.text)
        metrics = QFontMetrics(font)
        title = metrics.elidedText(str(index.data()), Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(QRect(room.left(), room.top(), room.width(), metrics.height()), 0, title)
        below = room.adjusted(0, metrics.height() + _LINE_GAP_PX, 0, 0)
        self._paint_state(painter, below, words)
        painter.restore()

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        """Fill the editor once: the row of a running chat changes while its title is being written."""
        if not editor.property(_IS_FILLED):
            editor.setProperty(_IS_FILLED, True)
            super().setEditorData(editor, index)

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: _Index
    ) -> None:
        editor.setGeometry(option.rect.adjusted(_SIDE_PX, 4, -_SIDE_PX, -4))

    def _paint_card(
        self, painter: QPainter, card: QRect, state: QStyle.StateFlag, *, is_open: bool
    ) -> None:
        colors = self._theme.colors
        is_hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        if is_open or is_hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.selected if is_open else colors.hover)
            painter.drawRoundedRect(card, 8, 8)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colors.accent, 1))
            painter.drawRoundedRect(QRectF(card).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)

    def _paint_edge(self, painter: QPainter, card: QRect, hue: QColor) -> None:
        """The hue that the chat has in the pool."""
        edge = QRectF(card.left() + 3, card.top() + 8, _EDGE_PX, card.height() - 16)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(hue)
        painter.drawRoundedRect(edge, _EDGE_PX / 2, _EDGE_PX / 2)

    def _paint_state(self, painter: QPainter, room: QRect, words: StatusWords) -> None:
        font = self._theme.font(self._theme.small_px)
        metrics = QFontMetrics(font)
        left = room.left()
        if words.mark is not Mark.NONE:
            top = room.top() + (metrics.height() - MARK_PX) / 2
            paint_mark(painter, QRectF(left, top, MARK_PX, MARK_PX), words, self._theme.colors)
            left += MARK_PX + 6
        painter.setFont(font)
        painter.setPen(tone_color(words.tone, self._theme.colors))
        width = room.right() - left + 1
        text = metrics.elidedText(words.text, Qt.TextElideMode.ElideRight, width)
        painter.drawText(QRect(left, room.top(), width, metrics.height()), 0, text)
