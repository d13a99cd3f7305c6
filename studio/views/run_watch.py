"""Looks at the engine's snapshot for the whole window, and not at all while nobody sees it.

GUI thread. The one place in the window that polls: status line, strips, rows and the pool panel show what it holds. It
looks often while requests are alive, since looking costs next to nothing where nothing is new, and tells who draws the
pool at most ten times a second, everybody else four times.
"""

from __future__ import annotations

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QTimer, Signal

from engine.api import EngineSnapshot, Origin
from engine.runs import Run
from studio.models.chat import Conversation
from studio.models.timeline import owner_key
from studio.services.run_service import RunService
from studio.views.run_sentences import Others
from studio.views.theme import NUM_HUES

TICK_MS = 250
"""Between two `ticked`, and between two looks while nothing is alive."""
_LOOK_MS = 45
_DRAW_MS = 85
"""Between two `moved`, which come with every second look: a change is on screen within 100 ms, drawing included."""


class RunWatch(QObject):
    """Reads; whoever shows something listens."""

    ticked = Signal()
    """Four times a second, also if nothing has changed but the time."""
    moved = Signal()
    """The snapshot is a new one. Some ten times a second at most; `ticked` may come with it."""

    def __init__(self, runs: RunService, parent: QObject) -> None:
        super().__init__(parent)
        self.snapshot = EngineSnapshot()
        self.others = Others()
        """Names and hues of all that is in flight."""
        self._service = runs
        self._runs: dict[str, Run] = {}
        self._hues = Hues()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)  # others are up to 5 % late
        self._timer.timeout.connect(self._look_if_due)
        self._since_tick = QElapsedTimer()
        self._since_move = QElapsedTimer()
        self._since_move.start()
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
        self._read(self._service.snapshot())
        self._since_move.restart()
        self.moved.emit()
        self._since_tick.start()
        self.ticked.emit()

    def hue_of(self, request_id: str) -> int:
        """The number of a request's hue, also after its end: a chat keeps its own from reply to reply."""
        return self._hues.of(owner_key(request_id))

    def _look_if_due(self) -> None:
        if self._since_tick.elapsed() >= TICK_MS - _LOOK_MS // 2:
            self.look()
            return
        snapshot = self._service.snapshot()
        if snapshot is not self.snapshot and self._since_move.elapsed() >= _DRAW_MS:
            self._read(snapshot)
            self._since_move.restart()
            self.moved.emit()

    def _read(self, snapshot: EngineSnapshot) -> None:
        self.snapshot = snapshot
        self._runs = {run.request_id: run for run in snapshot.runs}
        self._hues.keep({owner_key(id_) for id_ in self._runs})
        self._timer.setInterval(_LOOK_MS if self._runs else TICK_MS)
        self.others = Others(
            names=self._service.names(snapshot.runs),
            titles=frozenset(run.request_id for run in snapshot.runs if run.origin is Origin.GUI),
            hues={id_: self._hues.of(owner_key(id_)) for id_ in self._runs},
            page_tokens=snapshot.pool.page_tokens,
            can_park=snapshot.parks.budget_bytes != 0,
        )

    def run_of(self, chat: Conversation) -> Run | None:
        """Where the chat's running reply stands in the engine; None if there is none, or not yet."""
        return self._runs.get(chat.request_id or "")


class Hues:
    """One hue a chat or program's request, different ones for up to NUM_HUES alive at a time.

    Who is gone keeps his as long as nobody else needs it, so that a chat has the same one in its next reply.
    """

    def __init__(self) -> None:
        self._hues: dict[str, int] = {}
        """The one gone longest first."""
        self._alive: set[str] = set()

    def keep(self, alive: set[str]) -> None:
        """Say who is alive now."""
        self._alive = alive
        for key in sorted(alive):
            self._hues[key] = self._hues.pop(key) if key in self._hues else self._next()

    def of(self, key: str) -> int:
        """The hue, 0 for one that was never alive."""
        return self._hues.get(key, 0)

    def _next(self) -> int:
        taken = set(self._hues.values())
        free = next((hue for hue in range(NUM_HUES) if hue not in taken), None)
        if free is not None:
            return free
        gone = next((key for key in self._hues if key not in self._alive), None)
        return self._hues.pop(gone) if gone is not None else len(self._hues) % NUM_HUES
