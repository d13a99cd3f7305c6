"""A flat button with one of our icons, in the colour of the palette.

GUI thread. Its label is both the tool tip and the accessible name. Must not import services.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import QToolButton, QWidget

from studio.views.icons import palette_icon


class IconButton(QToolButton):
    """Set an object name to have the style sheet dress it otherwise."""

    def __init__(self, icon_name: str, label: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon_name = icon_name
        self.setIconSize(QSize(20, 20))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.set_label(label)
        self._draw()

    def set_label(self, label: str, *, shortcut: str = "") -> None:
        """Say what the button does; the tool tip also tells the keys."""
        self.setAccessibleName(label)
        self.setToolTip(f"{label}  {shortcut}" if shortcut else label)

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
