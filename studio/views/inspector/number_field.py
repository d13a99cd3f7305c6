"""A number field of the inspector: the wheel scrolls the page, the arrow keys change the value. GUI thread.

Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QWidget

from studio.views.inspector.chat_numbers import Scale
from studio.views.words import locale, tr

_FIELD_PX = 84
_MARGIN_PX = 8
"""A style sheet's padding does not reach the text of a spin box."""


class NumberField(QDoubleSpinBox):
    """Turning the wheel scrolls the page, not the value; the arrow keys change it."""

    def __init__(self, scale: Scale, parent: QWidget) -> None:
        super().__init__(parent)
        self.setLocale(locale())
        self.setDecimals(scale.decimals)
        self.setRange(scale.low, scale.most)
        self.setSingleStep(scale.step)
        self.setKeyboardTracking(False)
        self.setFixedWidth(_FIELD_PX)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.lineEdit().setTextMargins(_MARGIN_PX, 0, _MARGIN_PX, 0)
        if scale.low_is_off:
            self.setSpecialValueText(tr("off"))

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
