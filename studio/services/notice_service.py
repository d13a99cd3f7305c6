"""Turns every error into a notice: one table from code to level, words and what can be done. GUI thread, no Qt."""

from __future__ import annotations

from engine.errors import EngineError
from studio.models.errors import StudioError
from studio.models.notices import Notice, NoticeList


class NoticeService:
    """Everything that should reach the user goes through `report` or `show`; views show `notices`."""

    def __init__(self) -> None:
        self.notices = NoticeList()

    def report(self, error: EngineError | StudioError) -> None:
        """Show what the table says about the error, its own text as the detail."""
        raise NotImplementedError

    def show(self, notice: Notice) -> None:
        """Show a notice that is no error."""
        raise NotImplementedError

    def resolve(self, code: str) -> None:
        """The cause is gone: take the notice away."""
        raise NotImplementedError
