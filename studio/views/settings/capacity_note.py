"""Under the pool's size in the settings: how many chats it holds, said in chats instead of tokens. GUI thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QLabel, QWidget

from studio.models.capacity import USUAL_CHAT_TOKENS, capacity_of
from studio.models.settings import Settings
from studio.views.labels import dress
from studio.views.monitor.history_words import capacity_words


class CapacityNote(QLabel):
    """Hidden where memory decides: then nobody knows before a model is chosen."""

    def __init__(
        self, settings: Settings, parent: QWidget, *, shortage: Callable[[], str] = lambda: ""
    ) -> None:
        """`shortage` says why the loaded model cannot have the pool that the settings ask for, "" if it can."""
        super().__init__(parent)
        self._shortage = shortage
        self.setWordWrap(True)
        self.show_settings(settings)

    def show_settings(self, settings: Settings) -> None:
        """Say it of these."""
        pool_tokens = settings.engine.ctx_size
        self.setVisible(pool_tokens > 0)
        capacity = capacity_of(
            pool_tokens,
            chat_tokens=USUAL_CHAT_TOKENS,
            parallel=settings.engine.parallel,
            can_park=settings.park.ram_mib != 0,
        )
        shortage = self._shortage() if pool_tokens > 0 else ""
        self.setText(shortage or capacity_words(capacity) + ".")
        dress(self, "failed" if shortage else "secondary")
