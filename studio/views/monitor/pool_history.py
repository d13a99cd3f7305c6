"""The lower part of the pool panel: the timeline, the longest wait, and how well waits held. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from engine.api import EngineSnapshot, KvType
from studio.models.model_fit import bytes_of_value
from studio.views.context import Context
from studio.views.labels import line
from studio.views.monitor.history_words import (
    denser_words,
    longest_words,
    saving_words,
    tally_words,
)
from studio.views.monitor.pool_figures import set_text
from studio.views.monitor.timeline_view import Picture, TimelineView
from studio.views.words import tr

_ONE_GB = 1 << 30
_NO_LIMIT_PX = 1 << 20
_USUAL_LANES = 6
_GAP_PX = 4


class PoolHistory(QWidget):
    """Hidden while there is nothing to tell."""

    def __init__(self, context: Context, parent: QWidget) -> None:
        super().__init__(parent)
        self._context = context
        self._room_px, self._most_lanes = _NO_LIMIT_PX, _USUAL_LANES
        self._title = title = QLabel(tr("Timeline"), self)
        title.setObjectName("title")
        self.timeline = TimelineView(context.theme, self)
        self._words = tuple(line("", "secondary", self) for _ in range(4))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(_GAP_PX)
        layout.addWidget(title)
        layout.addWidget(self.timeline)
        for label in self._words:
            layout.addWidget(label)

    def minimumSizeHint(self) -> QSize:
        """It takes what there is, and never makes the window grow."""
        return QSize(super().minimumSizeHint().width(), 0)

    def set_room(self, height_px: int, *, most_lanes: int) -> None:
        """How high it may be: the words go first, then lanes; with room for neither it is not there at all."""
        self._room_px, self._most_lanes = height_px, most_lanes

    def refresh(self) -> None:
        """Draw what the history knows now."""
        history = self._context.services.history
        saving = history.saving(_ONE_GB)
        denser = history.saving(gained_bytes(self._context.watch.snapshot))
        lanes = history.lanes()
        room = self._room_px - self._title.sizeHint().height() - _GAP_PX
        num_lanes = min(self._most_lanes, self.timeline.lanes_within(room))
        self.setVisible(bool(lanes) and num_lanes > 0)
        if not lanes or num_lanes <= 0:
            return
        self.timeline.set_most_lanes(num_lanes)
        self.timeline.show_picture(Picture(lanes, history.now_s, self._context.watch.hue_of))
        texts = (
            longest_words(history.longest_wait()),
            tally_words(history.tally),
            saving_words(saving),
            denser_words(denser),
        )
        room -= self.timeline.height()
        for label, text in zip(self._words, texts, strict=True):
            set_text(label, text)
            room -= label.heightForWidth(self.width()) + _GAP_PX
            label.setVisible(bool(text) and room >= 0)


def gained_bytes(snapshot: EngineSnapshot) -> int:
    """What the pool would hold more in the same memory, were its keys and values stored as Q8_0; 0 if they are."""
    pool, options = snapshot.pool, snapshot.options
    if options is None:
        return 0
    times = bytes_of_value(options.kv_type) / bytes_of_value(KvType.Q8_0)
    return round((times - 1) * pool.total_pages * pool.page_bytes)
