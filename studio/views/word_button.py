"""A button with words beside one of our icons, which follows the theme. GUI thread. Must not import services."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize
from PySide6.QtWidgets import QPushButton, QWidget

from studio.views.icons import palette_icon

_ICON_PX = 18


class WordButton(QPushButton):
    """Set an object name to have the style sheet dress it."""

    def __init__(self, icon_name: str, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self._icon_name = icon_name
        self.setIconSize(QSize(_ICON_PX, _ICON_PX))
        self._draw()

    def set_icon_name(self, icon_name: str) -> None:
        if icon_name != self._icon_name:
            self._icon_name = icon_name
            self._draw()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._draw()

    def _draw(self) -> None:
        self.setIcon(palette_icon(self._icon_name, self.palette()))
