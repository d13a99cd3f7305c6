"""The table of requests: as many columns as there is room for, a shape before each state. GUI thread.

What a column hides stands in the detail below the table; it never scrolls sideways. Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from studio.views.server.requests_model import STATE_ROLE, Column, RequestsModel
from studio.views.state_mark import MARK_PX, paint_mark
from studio.views.status_words import StatusWords
from studio.views.theme import Theme
from studio.views.words import count, seconds, tr

_CELL_PX = 10
"""Free at both sides of a cell's text: what the style sheet has, and a pixel against rounding."""
_ROW_MORE_PX = 12
_LEAST_ROW_PX = 28
_GIVEN_UP = (Column.TIME, Column.DURATION, Column.TOKENS)
"""The first goes first where the table is too narrow: rows are in the order of their times."""


class RequestsTable(QTableView):
    """Shows a RequestsModel."""

    def __init__(self, model: RequestsModel, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("requests")
        self.setAccessibleName(tr("Requests of programs"))
        self.setModel(model)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setItemDelegateForColumn(Column.STATE, _StateDelegate(theme, self))
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setSectionResizeMode(Column.REQUEST, QHeaderView.ResizeMode.Stretch)
        self._arrange()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._arrange()

    def _arrange(self) -> None:
        """Columns as wide as their words; fewer of them, and shorter words, where the request's own would be cut."""
        room_px, request_px = self.viewport().width(), self._width_of("POST /v1/chat/completions")
        hidden: set[Column] = set()
        widths = self._widths(is_roomy=True)
        for given_up in (None, *_GIVEN_UP):
            shown_px = sum(px for column, px in widths.items() if column not in hidden)
            if shown_px + request_px <= room_px:
                break
            widths = self._widths(is_roomy=False)
            if given_up is not None:
                hidden.add(given_up)
        for column, px in widths.items():
            self.setColumnHidden(column, column in hidden)
            self.horizontalHeader().resizeSection(column, px)
        row_px = max(_LEAST_ROW_PX, self.fontMetrics().height() + _ROW_MORE_PX)
        self.verticalHeader().setDefaultSectionSize(row_px)

    def _widths(self, *, is_roomy: bool) -> dict[Column, int]:
        """By what is likely to stand in them."""
        parked = tr("Done · parked for {time}").format(time=seconds(9.9))
        state = parked if is_roomy else tr("Failed · {status}").format(status=400)
        return {
            Column.TIME: self._width_of("00:00:00"),
            Column.CLIENT: self._width_of("127.0.0.1"),
            Column.STATE: self._width_of(state) + MARK_PX + _CELL_PX,
            Column.TOKENS: self._width_of(f"{count(9999)} + {count(9999)}"),
            Column.DURATION: max(map(self._width_of, (seconds(599), seconds(0), tr("Duration")))),
        }

    def _width_of(self, text: str) -> int:
        return self.fontMetrics().horizontalAdvance(text) + 2 * _CELL_PX


class _StateDelegate(QStyledItemDelegate):
    """Draws the shape of a state before its words."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        words = index.data(STATE_ROLE)
        if isinstance(words, StatusWords):
            option.features |= QStyleOptionViewItem.ViewItemFeature.HasDecoration
            option.decorationSize = QSize(MARK_PX, MARK_PX)
            option.icon = self._icon(words, option.widget.devicePixelRatioF())

    def _icon(self, words: StatusWords, scale: float) -> QIcon:
        drawn = QPixmap(QSize(MARK_PX, MARK_PX) * scale)
        drawn.setDevicePixelRatio(scale)
        drawn.fill(Qt.GlobalColor.transparent)
        painter = QPainter(drawn)
        paint_mark(painter, QRectF(0, 0, MARK_PX, MARK_PX), words, self._theme.colors)
        painter.end()
        icon = QIcon(drawn)
        icon.addPixmap(drawn, QIcon.Mode.Selected)  # or it would be tinted
        return icon
