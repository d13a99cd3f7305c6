"""Starts the services' asynchronous methods from Qt's signals. GUI thread; the loop is the one that runs the window.

The one named boundary of the window where any exception is caught: it becomes a notice and a line in the log, and the
window lives on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from engine.errors import EngineError
from studio.models.errors import StudioError
from studio.models.notices import Notice, NoticeLevel
from studio.services.notice_service import NoticeService
from studio.views.words import tr

_log = logging.getLogger(__name__)


class Tasks:
    """Keeps every task referenced until it has ended."""

    def __init__(self, notices: NoticeService) -> None:
        self._notices = notices
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run `work` on the window's loop; what it raises becomes a notice."""
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._on_done)

    @property
    def num_running(self) -> int:
        return len(self._running)

    def cancel_all(self) -> None:
        """End what still runs; called when the window closes."""
        for task in tuple(self._running):
            task.cancel()

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, EngineError | StudioError):
            self._notices.report(error)
            return
        _log.error("a task of the window failed", exc_info=error)
        self._notices.show_unforeseen(
            Notice(
                code="window_task_failed",
                level=NoticeLevel.ERROR,
                text=tr("Something in Layby did not work; the log has the particulars."),
            )
        )
