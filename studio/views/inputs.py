"""Check box, list and fields as the whole window has them: in the theme's colours, left alone by the wheel.

GUI thread. Must not import services.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QResizeEvent,
    QShortcut,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QPlainTextEdit,
    QSpinBox,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStyleOptionFrame,
    QWidget,
)

from studio.views.icons import pixmap

_ARROW_PX = 16
_MARGIN_PX = 7
"""A style sheet's padding does not reach the text of a spin box. A line of text adds 2 px of its own."""


class CheckBox(QCheckBox):
    """The style sheet draws the box in the theme's colours; the tick is ours.

    So is the ring that tells of the keyboard, around the words: the box stands on the edge of the text around it.
    """

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        option, part = QStyleOptionButton(), QStyle.SubElement
        self.initStyleOption(option)
        if self.isChecked():
            box = self.style().subElementRect(part.SE_CheckBoxIndicator, option, self)
            _draw_icon(self, "check", self.palette().highlightedText().color(), box)
        if self.hasFocus():
            words = self.style().subElementRect(part.SE_CheckBoxContents, option, self)
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self.palette().color(QPalette.ColorRole.Accent), 1))
            ring = QRectF(words.left(), 0, self.width() - words.left(), self.height())
            painter.drawRoundedRect(ring.adjusted(-5.5, 0.5, -0.5, -0.5), 6, 6)
            painter.end()


class QuietList(QComboBox):
    """Turning the wheel scrolls the page, not the value. The arrow is ours, in the theme's colours.

    A choice that has no room is cut with an ellipsis, and told as a whole by the tool tip.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        policy = QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        self.setSizeAdjustPolicy(policy)  # or the longest choice would widen the page
        self.setMinimumContentsLength(12)
        self.currentTextChanged.connect(self._tell_whole)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._tell_whole()

    def initStyleOption(self, option: QStyleOptionComboBox) -> None:
        super().initStyleOption(option)
        option.currentText = self._cut()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        draw_list_arrow(self)

    def _cut(self) -> str:
        option = QStyleOptionComboBox()
        super().initStyleOption(option)
        control, part = QStyle.ComplexControl.CC_ComboBox, QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(control, option, part, self)
        return self.fontMetrics().elidedText(
            self.currentText(), Qt.TextElideMode.ElideRight, room.width()
        )

    def _tell_whole(self) -> None:
        text = self.currentText()
        self.setToolTip(text if self._cut() != text else "")


class QuietNumber(QSpinBox):
    """Turning the wheel scrolls the page, not the value; the arrow keys change it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.lineEdit().setTextMargins(_MARGIN_PX, 0, _MARGIN_PX, 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def on_ctrl_enter(form: QWidget, do: Callable[[], object]) -> None:
    """Ctrl+Enter anywhere in a form does what it is there for, also where Enter begins a line."""
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
        shortcut = QShortcut(QKeySequence(Qt.Modifier.CTRL | key), form)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(do)


def draw_list_arrow(widget: QWidget) -> None:
    """The mark of what opens a list, at the right of a field."""
    right = QRect(widget.width() - _ARROW_PX - 8, 0, _ARROW_PX, widget.height())
    _draw_icon(widget, "chevron-down", widget.palette().placeholderText().color(), right)


def _draw_icon(widget: QWidget, name: str, color: QColor, room: QRect) -> None:
    side = min(room.width(), room.height(), _ARROW_PX)
    painter = QPainter(widget)
    corner = room.center() - QPoint(side // 2 - 1, side // 2 - 1)
    painter.drawPixmap(corner, pixmap(name, color, side, scale=widget.devicePixelRatioF()))
    painter.end()


class LinesField(QPlainTextEdit):
    """A field of so many lines, whole ones at every size of text; then it scrolls."""

    def __init__(self, num_lines: int, parent: QWidget) -> None:
        super().__init__(parent)
        self.num_lines = num_lines
        self.setObjectName("field")
        self.setTabChangesFocus(True)
        self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    def _fit(self) -> None:
        option, outer = QStyleOptionFrame(), QRect(0, 0, 200, 200)
        self.ensurePolished()
        self.initStyleOption(option)
        option.rect = outer
        part = QStyle.SubElement.SE_ShapedFrameContents
        inner = self.style().subElementRect(part, option, self)
        line_px = QFontMetricsF(self.font()).lineSpacing()
        text_px = self.num_lines * line_px + 2 * self.document().documentMargin()
        self.setFixedHeight(outer.height() - inner.height() + math.ceil(text_px) + 1)
