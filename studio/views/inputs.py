"""Check box, list and number field as the whole window has them: in the theme's colours, left alone by the wheel.

GUI thread. Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QSpinBox,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QWidget,
)

from studio.views.icons import pixmap

_ARROW_PX = 16
_MARGIN_PX = 8
"""A style sheet's padding does not reach the text of a spin box."""


class CheckBox(QCheckBox):
    """The style sheet draws the box in the theme's colours; the tick is ours."""

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self.isChecked():
            option = QStyleOptionButton()
            self.initStyleOption(option)
            element = QStyle.SubElement.SE_CheckBoxIndicator
            box = self.style().subElementRect(element, option, self)
            _draw_icon(self, "check", self.palette().highlightedText().color(), box)


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
        right = QRect(self.width() - _ARROW_PX - 8, 0, _ARROW_PX, self.height())
        _draw_icon(self, "chevron-down", self.palette().placeholderText().color(), right)

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


def _draw_icon(widget: QWidget, name: str, color: QColor, room: QRect) -> None:
    side = min(room.width(), room.height(), _ARROW_PX)
    painter = QPainter(widget)
    corner = room.center() - QPoint(side // 2 - 1, side // 2 - 1)
    painter.drawPixmap(corner, pixmap(name, color, side, scale=widget.devicePixelRatioF()))
    painter.end()
