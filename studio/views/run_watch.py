"""Looks at the engine's snapshot four times a second for the whole window, and not at all while nobody sees it.

GUI thread. The one place in the window that polls: status line, strips, rows and the pool panel show what it holds.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from engine.api import EngineSnapshot, Origin
from engine.runs import Run
from studio.models.chat import Conversation
from studio.services.run_service import RunService
from studio.views.run_sentences import Others
from studio.views.theme import NUM_HUES

POLL_MS = 250


class RunWatch(QObject):
    """`ticked` comes after every look, also if nothing has changed but the time."""

    ticked = Signal()

    def __init__(self, runs: RunService, parent: QObject) -> None:
        super().__init__(parent)
        self.snapshot = EngineSnapshot()
        self.others = Others()
        """Names and hues of all that is in flight."""
        self._service = runs
        self._runs: dict[str, Run] = {}
        self._hues: dict[str, int] = {}
        self._timer = QTimer(self)
        self._timer.setInterval(POLL_MS)
        self._timer.timeout.connect(self.look)
        self.look()

    def set_paused(self, *, is_paused: bool) -> None:
        """Rest while nobody can see the window; look at once when somebody can again."""
        if is_paused:
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()
            self.look()

    def look(self) -> None:
        """Read the snapshot and tell everybody."""
        self.snapshot = snapshot = self._service.snapshot()
        self._runs = {run.request_id: run for run in snapshot.runs}
        self._give_hues()
        self.others = Others(
            names=self._service.names(snapshot.runs),
            titles=frozenset(run.request_id for run in snapshot.runs if run.origin is Origin.GUI),
            hues=self._hues,
            page_tokens=snapshot.pool.page_tokens,
            can_park=snapshot.parks.budget_bytes != 0,
        )
        self.ticked.emit()

    def run_of(self, chat: Conversation) -> Run | None:
        """Where the chat's running reply stands in the engine; None if there is none, or not yet."""
        return self._runs.get(chat.request_id or "")

    def _give_hues(self) -> None:
        """One hue for as long as a request lives, and different ones for up to NUM_HUES of them."""
        self._hues = {id_: hue for id_, hue in self._hues.items() if id_ in self._runs}
        for request_id in self._runs:
            if request_id not in self._hues:
                taken = set(self._hues.values())
                free = (hue for hue in range(NUM_HUES) if hue not in taken)
                self._hues[request_id] = next(free, len(self._hues) % NUM_HUES)
