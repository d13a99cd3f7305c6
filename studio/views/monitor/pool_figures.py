"""The upper part of the pool panel: the map, the memory of parked chats, and how many chats fit. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from engine.api import EngineSnapshot, PoolUsage
from studio.models.capacity import USUAL_CHAT_TOKENS, capacity_of
from studio.views.context import Context
from studio.views.labels import line
from studio.views.monitor.history_words import capacity_words
from studio.views.monitor.pool_bar import PoolBar
from studio.views.monitor.pool_map import PoolMap
from studio.views.monitor.segments import (
    describe_pool,
    memory_segments,
    park_words,
    pool_segments,
)
from studio.views.monitor.status_line import pool_words
from studio.views.status_words import joined
from studio.views.words import count, tr

_MEMORY_PX = 10


class PoolFigures(QWidget):
    """`chosen` carries the id of a request whose pages were clicked."""

    chosen = Signal(str)
    size_wanted = Signal()
    """The pool is to have another size."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self.map = PoolMap(tr("Pool by chat"), context.theme, self)
        self.map.chosen.connect(self.chosen)
        self.memory = PoolBar(tr("Memory of parked chats"), context.theme, self)
        self.memory.setFixedHeight(_MEMORY_PX)
        self._pool = line("", "secondary", self)
        self._parks = line("", "secondary", self)
        self._capacity = line("", "secondary", self)
        self.size_button = QPushButton(tr("Change the pool's size…"), self)
        self.size_button.setObjectName("lineLink")
        self.size_button.clicked.connect(self.size_wanted)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self.map)
        layout.addWidget(self._pool)
        layout.addWidget(self._capacity)
        layout.addWidget(self.size_button, 0, Qt.AlignmentFlag.AlignLeading)
        layout.addSpacing(4)
        layout.addWidget(self.memory)
        layout.addWidget(self._parks)

    def fit_height(self, width_px: int, *, may_shrink: bool = True) -> int:
        """Keep as high as its words are at a width, however low the panel; that height."""
        layout = self.layout()
        assert layout is not None
        wraps = layout.hasHeightForWidth()
        height_px = layout.totalHeightForWidth(width_px) if wraps else self.sizeHint().height()
        if not may_shrink:
            height_px = max(height_px, self.minimumHeight())
        if self.minimumHeight() != height_px:
            self.setMinimumHeight(height_px)
        return height_px

    def show_pictures(self, snapshot: EngineSnapshot) -> None:
        """What has colours; cheap, for often."""
        others = self._context.watch.others
        self.map.show_segments(pool_segments(snapshot, others), describe_pool(snapshot.pool))
        self.memory.show_segments(memory_segments(snapshot, others), park_words(snapshot.parks))

    def show_words(self, snapshot: EngineSnapshot) -> None:
        """What is read."""
        pool, parks, options = snapshot.pool, snapshot.parks, snapshot.options
        set_text(self._pool, _pool_words(pool))
        set_text(self._parks, park_words(parks))
        has_pool = bool(pool.total_pages) and options is not None
        self.map.setVisible(has_pool)
        self.memory.setVisible(has_pool and parks.budget_bytes != 0)
        self._parks.setVisible(has_pool)
        self._capacity.setVisible(has_pool)
        self.size_button.setVisible(has_pool)
        if options is not None and has_pool:
            capacity = capacity_of(
                pool.total_pages * pool.page_tokens,
                chat_tokens=min(USUAL_CHAT_TOKENS, snapshot.window_tokens or USUAL_CHAT_TOKENS),
                parallel=options.parallel,
                can_park=parks.budget_bytes != 0,
                page_tokens=pool.page_tokens,
            )
            set_text(self._capacity, capacity_words(capacity))


def _pool_words(pool: PoolUsage) -> str:
    """As in the status line, and what the dim cells are."""
    kept = tr("{count} kept for reuse").format(count=count(pool.reusable_pages * pool.page_tokens))
    return joined(pool_words(pool), kept if pool.reusable_pages else "")


def set_text(label: QLabel, text: str) -> None:
    """Change the text where it is another; laying out anew costs more than looking."""
    if label.text() != text:
        label.setText(text)
