"""The KV pool as one thin bar: used, kept prefixes, free. GUI thread; must not import services."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.api import PoolUsage
from studio.views.theme import Theme
from studio.views.words import count, tr

_WIDTH_PX = 140
_HEIGHT_PX = 6
_KEPT_OPACITY = 0.3


class PoolBar(QWidget):
    """Kept prefixes are drawn faint: they are free for the taking."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._pool = PoolUsage()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Pool"))

    def show_pool(self, pool: PoolUsage) -> None:
        if pool != self._pool:
            self._pool = pool
            self.setToolTip(describe_pool(pool))
            self.setAccessibleDescription(describe_pool(pool))
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH_PX, _HEIGHT_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box, colors = QRectF(self.rect()), self._theme.colors
        shape = QPainterPath()
        shape.addRoundedRect(box, _HEIGHT_PX / 2, _HEIGHT_PX / 2)
        painter.setClipPath(shape)
        painter.fillRect(box, colors.track)
        if self._pool.total_pages:
            used_px = box.width() * used_pages(self._pool) / self._pool.total_pages
            kept_px = box.width() * self._pool.reusable_pages / self._pool.total_pages
            painter.setPen(Qt.PenStyle.NoPen)
            painter.fillRect(QRectF(0, 0, used_px, box.height()), colors.accent)
            painter.setOpacity(_KEPT_OPACITY)
            painter.fillRect(QRectF(used_px, 0, kept_px, box.height()), colors.accent)
        painter.end()


def used_pages(pool: PoolUsage) -> int:
    """Pages that requests hold now."""
    return pool.total_pages - pool.free_pages - pool.reusable_pages


def describe_pool(pool: PoolUsage) -> str:
    """The bar in a sentence."""
    if not pool.total_pages:
        return tr("There is no pool before a model is loaded")
    page = pool.page_tokens
    return tr(
        "Chats hold {used} of {total} tokens of room; {kept} more keep beginnings that may be used again"
    ).format(
        used=count(used_pages(pool) * page),
        total=count(pool.total_pages * page),
        kept=count(pool.reusable_pages * page),
    )
