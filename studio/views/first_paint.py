"""Tells when a window has been drawn for the first time. GUI thread."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QWidget


class FirstPaint(QObject):
    """Made before the window is shown."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._has_come = asyncio.Event()
        self._window = window
        window.installEventFilter(self)

    async def wait(self, at_most_s: float) -> None:
        """Return once it is on screen, or after so long: one that is hidden or covered is not drawn."""
        try:
            async with asyncio.timeout(at_most_s):
                await self._has_come.wait()
        except TimeoutError:
            return
        await asyncio.sleep(0)  # the event comes before the drawing

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint:
            self._window.removeEventFilter(self)
            self._has_come.set()
        return False
