"""Room for what stands above the composer: as high as it is, and in a low pane it scrolls. GUI thread; no services."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QScrollArea, QWidget

from studio.views.paged_dialog import scrolled

_LEAST_PX = 40


class BoundedArea(QWidget):
    """`inner` has a layout; the keyboard brings into sight what it comes to."""

    def __init__(self, name: str, inner: QWidget, parent: QWidget) -> None:
        super().__init__(parent)
        self._inner = inner
        self._most_px = 1 << 20
        self._area: QScrollArea = scrolled(name, inner, self)
        inner.installEventFilter(self)

    def set_most_px(self, height: int) -> None:
        """How high it may be."""
        if height != self._most_px:
            self._most_px = height
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._area.setGeometry(self.rect())
        if event.size().width() != event.oldSize().width():
            self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        layout = self._inner.layout()
        assert layout is not None
        height = layout.totalHeightForWidth(self.width())
        self.setFixedHeight(min(height, max(self._most_px, _LEAST_PX)))
        bar = Qt.ScrollBarPolicy
        is_cut = height > self.height()
        self._area.setVerticalScrollBarPolicy(
            bar.ScrollBarAsNeeded if is_cut else bar.ScrollBarAlwaysOff
        )
        self._area.setGeometry(self.rect())  # no event tells of a resize within one
