"""A start of Layby that finds the chats open in another: it waits for that one to listen, or to be gone. GUI thread.

That one may have begun a moment ago, and take long on a busy machine, or be about to end. Must not import services.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from PySide6.QtCore import QThread

from studio.models.notices import Notice
from studio.models.settings import AppearanceSettings
from studio.views.dialogs.refusal import say_while

PATIENCE_MS = 3_000
"""Before it is said on screen what is waited for."""
_BETWEEN_LOOKS_MS = 200


class Turn(Enum):
    """What came of the waiting."""

    HANDED_OVER = "handed over"
    FREE = "free"
    """Nobody has the chats open any more."""
    GIVEN_UP = "given up"


class _Looking(QThread):
    def __init__(self, look: Callable[[], Turn | None]) -> None:
        super().__init__()
        self.turn = Turn.GIVEN_UP
        self._look = look

    def run(self) -> None:
        while not self.isInterruptionRequested():
            if (turn := self._look()) is not None:
                self.turn = turn
                return
            self.msleep(_BETWEEN_LOOKS_MS)


def wait_for_turn(
    look: Callable[[], Turn | None], notice: Notice, appearance: AppearanceSettings
) -> Turn:
    """Look, in a thread of its own, until there is an answer or the user has closed what is said meanwhile."""
    looking = _Looking(look)
    looking.start()
    if not looking.wait(PATIENCE_MS):
        say_while(looking, notice, appearance)
        looking.requestInterruption()
        looking.wait()
    return looking.turn
