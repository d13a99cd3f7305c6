"""Paints the rows of the list: a chat with its state as shape and words, a folder, a heading. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
)
from PySide6.QtGui import QColor, QFontMetrics, QHelpEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from studio.views.elided_label import whole_parts
from studio.views.icons import pixmap
from studio.views.sidebar.chat_list_model import RowRole
from studio.views.sidebar.list_rows import ChatRow, FolderRow, HeaderRow, Row
from studio.views.sidebar.program_runs import RunRow
from studio.views.sidebar.snippet_line import paint_snippet
from studio.views.state_mark import MARK_PX, paint_mark, tone_color
from studio.views.status_words import Mark, StatusWords, title_words
from studio.views.theme import Theme
from studio.views.tips import show_tip
from studio.views.words import count

_Index = QModelIndex | QPersistentModelIndex
_SIDE_PX = 8
_INSET_PX = 12
_INDENT_PX = 16
_PAD_PX = 7
_LINE_GAP_PX = 3
_EDGE_PX = 3
_ICON_PX = 14
_GAP_PX = 6
_CHEVRON_PX = 12
_IS_FILLED = "isFilled"


def words_room(row_px: int) -> int:
    """How wide the words under a title may be in a row of no folder."""
    return row_px - 2 * (_SIDE_PX + _INSET_PX) - MARK_PX - _GAP_PX


class ConversationRow(QStyledItemDelegate):
    """Chats have two lines, folders and headings one."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.num_selected = 0
        """Rows that are selected: one alone is where the keyboard stands, or what a menu is for."""
        self._theme = theme
        self._lines_px: dict[int, int] = {}
        """By the size of the letters."""

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        row: Row = index.data(RowRole.ROW)
        title, state = self._line_px(self._theme.ui_px), self._line_px(self._theme.small_px)
        if isinstance(row, HeaderRow):
            return QSize(120, state + 20)
        if isinstance(row, FolderRow):
            return QSize(120, title + 2 * _PAD_PX + 2)
        return QSize(120, title + state + _LINE_GAP_PX + 2 * _PAD_PX + 2)

    def _line_px(self, size_px: int) -> int:
        """How high a line is; measured once, for a view asks it of each of thousands of rows."""
        if size_px not in self._lines_px:
            self._lines_px[size_px] = QFontMetrics(self._theme.font(size_px)).height()
        return self._lines_px[size_px]

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        row: Row = index.data(RowRole.ROW)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto)  # a name has its own
        card = option.rect.adjusted(_SIDE_PX, 1, -_SIDE_PX, -1)
        match row:
            case HeaderRow():
                self._paint_heading(painter, card, str(index.data()))
            case FolderRow():
                self._paint_card(painter, card, option, is_open=False)
                self._paint_folder(painter, card, row)
            case ChatRow() | RunRow():
                is_open = bool(index.data(RowRole.IS_OPEN))
                self._paint_card(painter, card, option, is_open=is_open)
                hue = index.data(RowRole.HUE)
                if hue is not None:
                    self._paint_edge(painter, card, self._theme.hues[hue])
                self._paint_chat(painter, card, row, index.data(RowRole.WORDS))
        if self.num_selected > 1 and option.state & QStyle.StateFlag.State_Selected:
            self._paint_tick(painter, card)
        painter.restore()

    def helpEvent(
        self,
        event: QHelpEvent,
        view: QAbstractItemView,
        option: QStyleOptionViewItem,
        index: _Index,
    ) -> bool:
        if event.type() != QEvent.Type.ToolTip:
            return super().helpEvent(event, view, option, index)
        text = str(index.data(Qt.ItemDataRole.ToolTipRole) or "")
        show_tip(event, text, view.viewport(), option.rect)
        return True

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        """Fill the editor once: the row of a running chat changes while its title is being written."""
        if not editor.property(_IS_FILLED):
            editor.setProperty(_IS_FILLED, True)
            super().setEditorData(editor, index)

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: _Index
    ) -> None:
        rect = option.rect.adjusted(_SIDE_PX, 1, -_SIDE_PX, -1)
        height = min(rect.height(), editor.sizeHint().height())
        editor.setGeometry(rect.left(), rect.center().y() - height // 2, rect.width(), height)

    def _paint_card(
        self, painter: QPainter, card: QRect, option: QStyleOptionViewItem, *, is_open: bool
    ) -> None:
        colors, state = self._theme.colors, option.state
        is_selected = bool(state & QStyle.StateFlag.State_Selected)
        is_hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        is_marked = is_open or (is_selected and self.num_selected > 1)
        if is_marked or is_selected or is_hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colors.selected if is_marked else colors.hover)
            painter.drawRoundedRect(card, 8, 8)
        if state & QStyle.StateFlag.State_HasFocus:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(colors.accent, 1))
            painter.drawRoundedRect(QRectF(card).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)

    def _paint_heading(self, painter: QPainter, card: QRect, text: str) -> None:
        font = self._theme.font(self._theme.small_px, is_bold=True)
        painter.setFont(font)
        painter.setPen(self._theme.colors.secondary)
        room = card.adjusted(_INSET_PX, 0, -_INSET_PX, -4)
        text = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft, text)

    def _paint_folder(self, painter: QPainter, card: QRect, row: FolderRow) -> None:
        colors, font = self._theme.colors, self._theme.font(self._theme.ui_px)
        room = card.adjusted(_INSET_PX - 4 + row.depth * _INDENT_PX, 0, -_INSET_PX, 0)
        name = "chevron-down" if row.folder.is_open else "chevron-right"
        self._paint_icon(painter, room, name, _CHEVRON_PX)
        room.setLeft(room.left() + _CHEVRON_PX + 4)
        self._paint_icon(painter, room, "folder", _ICON_PX)
        room.setLeft(room.left() + _ICON_PX + _GAP_PX)
        number = count(row.num_chats) if row.num_chats else ""
        small = self._theme.font(self._theme.small_px)
        painter.setFont(small)
        painter.setPen(colors.secondary)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(room, middle | Qt.AlignmentFlag.AlignRight, number)
        room.setRight(room.right() - QFontMetrics(small).horizontalAdvance(number) - _GAP_PX)
        painter.setFont(font)
        painter.setPen(colors.text)
        mode = Qt.TextElideMode.ElideRight
        name = QFontMetrics(font).elidedText(row.folder.name, mode, room.width())
        painter.drawText(room, middle | Qt.AlignmentFlag.AlignLeft, name)

    def _paint_edge(self, painter: QPainter, card: QRect, hue: QColor) -> None:
        """The hue that the chat has in the pool."""
        edge = QRectF(card.left() + 3, card.top() + 8, _EDGE_PX, card.height() - 16)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(hue)
        painter.drawRoundedRect(edge, _EDGE_PX / 2, _EDGE_PX / 2)

    def _paint_chat(
        self, painter: QPainter, card: QRect, row: ChatRow | RunRow, words: StatusWords
    ) -> None:
        left = _INSET_PX + (row.depth * _INDENT_PX if isinstance(row, ChatRow) else 0)
        room = card.adjusted(left, _PAD_PX, -_INSET_PX, -_PAD_PX)
        font = self._theme.font(self._theme.ui_px, is_bold=words.mark is Mark.RING_DOT)
        metrics = QFontMetrics(font)
        line = QRect(room.left(), room.top(), room.width(), metrics.height())
        for name in _badges(row):
            place = QRect(line.right() - _ICON_PX + 1, line.top(), _ICON_PX, line.height())
            self._paint_icon(painter, place, name, _ICON_PX)
            line.setRight(line.right() - _ICON_PX - _GAP_PX)
        painter.setFont(font)
        painter.setPen(self._theme.colors.text)
        mode = Qt.TextElideMode.ElideRight
        name = title_words(row.chat) if isinstance(row, ChatRow) else row.name
        title = metrics.elidedText(name, mode, line.width())
        painter.drawText(line, 0, title)
        below = room.adjusted(0, metrics.height() + _LINE_GAP_PX, 0, 0)
        if isinstance(row, ChatRow) and row.snippet is not None:
            paint_snippet(painter, below, row.snippet, self._theme)
        else:
            self._paint_state(painter, below, words)

    def _paint_state(self, painter: QPainter, room: QRect, words: StatusWords) -> None:
        font = self._theme.font(self._theme.small_px)
        metrics = QFontMetrics(font)
        left = room.left()
        if words.mark is not Mark.NONE:
            top = room.top() + (metrics.height() - MARK_PX) / 2
            paint_mark(painter, QRectF(left, top, MARK_PX, MARK_PX), words, self._theme.colors)
            left += MARK_PX + _GAP_PX
        painter.setFont(font)
        painter.setPen(tone_color(words.tone, self._theme.colors))
        width = room.right() - left + 1
        text = whole_parts(words.text, metrics, width)
        painter.drawText(QRect(left, room.top(), width, metrics.height()), 0, text)

    def _paint_tick(self, painter: QPainter, card: QRect) -> None:
        """A selected row is told by a shape too."""
        colors, radius = self._theme.colors, 8
        middle = QPointF(card.right() - 10, card.bottom() - 12)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.accent)
        painter.drawEllipse(middle, radius, radius)
        scale = painter.device().devicePixelRatioF()
        picture = pixmap("check", colors.on_accent, _ICON_PX, scale=scale)
        painter.drawPixmap(middle - QPointF(_ICON_PX / 2, _ICON_PX / 2), picture)

    def _paint_icon(self, painter: QPainter, room: QRect, name: str, side_px: int) -> None:
        """At the left of the room, in its middle."""
        scale = painter.device().devicePixelRatioF()
        picture = pixmap(name, self._theme.colors.secondary, side_px, scale=scale)
        top = room.top() + (room.height() - side_px) / 2
        painter.drawPixmap(QPointF(room.left(), top), picture)


def _badges(row: ChatRow | RunRow) -> list[str]:
    """Icons at the right of a title, from the right."""
    if isinstance(row, RunRow):
        return ["program"]
    names = []
    if row.chat.is_pinned:
        names.append("pin")
    if row.chat.is_temporary:
        names.append("temporary")
    if row.chat.is_archived:
        names.append("archive")
    return names
