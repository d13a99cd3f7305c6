"""One number of a chat's settings: its name, a field, a slider, and a way back to the default. GUI thread.

Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSlider, QVBoxLayout, QWidget

from studio.views.icon_button import IconButton
from studio.views.inspector.chat_numbers import ChatNumber
from studio.views.inspector.number_field import NumberField
from studio.views.words import decimal, tr


class Knob(QWidget):
    """`edited` carries a value that the user gave."""

    edited = Signal(float)

    def __init__(self, number: ChatNumber, parent: QWidget) -> None:
        super().__init__(parent)
        self.number = number
        title, about, scale = number.title, number.about, number.scale
        self._scale = scale
        label = QLabel(title, self)
        label.setToolTip(about)
        self.field = NumberField(scale, self)
        self.field.setAccessibleName(title)
        self.field.setAccessibleDescription(about)
        self.slider = _Slider(Qt.Orientation.Horizontal, self)
        self.slider.setAccessibleName(title)
        self.slider.setRange(0, round((scale.high - scale.low) / scale.step))
        self.slider.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the field is enough for the keyboard
        default = decimal(scale.default, scale.decimals)
        words = tr("{title}: back to {default}").format(title=title, default=default)
        self.back = IconButton("undo", words, self)
        self.back.setObjectName("small")
        room = self.back.sizePolicy()
        room.setRetainSizeWhenHidden(True)  # or the name would move
        self.back.setSizePolicy(room)
        self.back.clicked.connect(lambda: self._give(scale.default))
        self.field.valueChanged.connect(self._give)
        self.slider.valueChanged.connect(lambda at: self._give(scale.low + at * scale.step))
        head = QHBoxLayout()
        head.setSpacing(4)
        head.addWidget(label, 1)
        head.addWidget(self.back)
        head.addWidget(self.field)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(head)
        layout.addWidget(self.slider)
        self.show_value(scale.default)

    def show_value(self, value: float) -> None:
        """Show a value without reporting it."""
        self.field.blockSignals(True)
        self.field.setValue(value)
        self.field.blockSignals(False)
        self.slider.blockSignals(True)
        self.slider.setValue(round((value - self._scale.low) / self._scale.step))
        self.slider.blockSignals(False)
        self.slider.update()
        self.back.setVisible(abs(value - self._scale.default) > self._scale.step / 100)

    def _give(self, value: float) -> None:
        value = round(value, self._scale.decimals)
        self.show_value(value)
        self.edited.emit(value)


class _Slider(QSlider):
    """Turning the wheel scrolls the page, not the value."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
