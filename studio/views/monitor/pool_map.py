"""The KV pool as one bar with a piece for each chat in its hue, and parked states against their budget. GUI thread.

Drawn from a snapshot when told; must not import services.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from engine.api import EngineSnapshot
from engine.runs import ParkUsage, RunState
from studio.views.monitor.pool_bar import used_pages
from studio.views.run_sentences import Others
from studio.views.theme import Theme
from studio.views.words import memory, tr

_HEIGHT_PX = 16
_RADIUS_PX = 4
_GAP_PX = 1
_KEPT_OPACITY = 0.3
_IN_POOL = frozenset(
    {RunState.READING, RunState.WRITING, RunState.BEING_PARKED, RunState.BEING_RESTORED}
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A share of the pool, 0 to 1, and whose it is: a hue's number, or None for kept beginnings."""

    share: float
    hue: int | None


def pieces_of(snapshot: EngineSnapshot, others: Others) -> tuple[Piece, ...]:
    """The pool's pages by owner, in the order of the requests, then the kept ones.

    Pages that several share are drawn with each of them; all are shrunk to what is used in truth.
    """
    pool = snapshot.pool
    if not pool.total_pages:
        return ()
    held = [
        (-(-run.held_tokens // pool.page_tokens), others.hue(run) or 0)
        for run in snapshot.runs
        if run.state in _IN_POOL and run.held_tokens
    ]
    wanted = sum(pages for pages, _ in held)
    shrink = min(1.0, used_pages(pool) / wanted) if wanted else 1.0
    owned = [Piece(pages * shrink / pool.total_pages, hue) for pages, hue in held]
    return (*owned, Piece(pool.reusable_pages / pool.total_pages, None))


class PoolMap(QWidget):
    """Any number of pieces on a track; what is left is free."""

    def __init__(self, name: str, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._pieces: tuple[Piece, ...] = ()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(name)

    def show_pieces(self, pieces: tuple[Piece, ...], words: str) -> None:
        """Draw the pieces; `words` say the same to a screen reader and in the tool tip."""
        if pieces != self._pieces:
            self._pieces = pieces
            self.update()
        if words != self.toolTip():
            self.setToolTip(words)
            self.setAccessibleDescription(words)

    def sizeHint(self) -> QSize:
        return QSize(120, _HEIGHT_PX)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        shape = QPainterPath()
        shape.addRoundedRect(box, _RADIUS_PX, _RADIUS_PX)
        painter.setClipPath(shape)
        painter.fillRect(box, self._theme.colors.track)
        left = 0.0
        for piece in self._pieces:
            width = box.width() * piece.share
            gap = _GAP_PX if width > 2 * _GAP_PX else 0
            painter.setOpacity(_KEPT_OPACITY if piece.hue is None else 1.0)
            painter.fillRect(QRectF(left, 0, width - gap, box.height()), self._color(piece))
            left += width
        painter.end()

    def _color(self, piece: Piece) -> QColor:
        return self._theme.colors.accent if piece.hue is None else self._theme.hues[piece.hue]


def park_words(parks: ParkUsage) -> str:
    """ "26 MB of 8 GB for parked chats"."""
    if parks.budget_bytes == 0:
        return tr("Parking is off: a chat that finds no room ends")
    if parks.budget_bytes < 0:
        return tr("{used} for parked chats, no limit").format(used=memory(parks.used_bytes))
    return tr("{used} of {budget} for parked chats").format(
        used=memory(parks.used_bytes), budget=memory(parks.budget_bytes)
    )
