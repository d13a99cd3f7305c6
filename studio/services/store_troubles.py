"""What cannot be written, told once: who has that trouble, and the notice that goes with the last of it.

GUI thread, no Qt.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from dataclasses import replace

from studio.models.errors import StoreError
from studio.models.notices import Notice
from studio.services.notice_service import NoticeService, notice_for

_log = logging.getLogger(__name__)
TRIES_AGAIN = "{0}; Layby tries again by itself"


class StoreTroubles:
    """Shared by all whose writing the history did not take."""

    def __init__(self, notices: NoticeService) -> None:
        self._notices = notices
        self._open: dict[Hashable, str] = {}
        """Codes of the errors, by whose they are."""
        self._refused: set[str] = set()
        """Codes of those that nobody tries again."""

    def tell(self, whose: Hashable, error: StoreError) -> None:
        """Show the error, and that it will be tried again."""
        self._open[whose] = error.code
        _log.info("%s: %s", error.code, error)
        self._notices.show(notice_while_trying(error))

    def refuse(self, error: StoreError) -> None:
        """Show the error; whoever wanted it stored has to want it again."""
        self._refused.add(error.code)
        self._notices.report(error)

    def is_told(self, whose: Hashable) -> bool:
        """Whether it has a trouble that was told."""
        return whose in self._open

    def over(self, whose: Hashable) -> None:
        """Whatever it was is written now, or need not be any more."""
        if (code := self._open.pop(whose, None)) is not None:
            self._resolve(code)

    def took(self) -> None:
        """What is like that which was refused has been stored."""
        for code in tuple(self._refused):
            self._resolve(code)

    def _resolve(self, code: str) -> None:
        if code not in self._open.values():
            self._refused.discard(code)
            self._notices.resolve(code)


def notice_while_trying(error: StoreError) -> Notice:
    """The notice of an error of which Layby tries again by itself what raised it."""
    return replace(notice_for(error), detail=TRIES_AGAIN.format(error))
