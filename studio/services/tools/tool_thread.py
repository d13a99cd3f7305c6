"""A thread with a loop of its own for servers of tools: their processes and sockets hold up no window.

`ToolThread` is used from the GUI thread; only what is submitted runs on its loop. It starts with the first work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class ToolThread:
    """Not for the loop of the window: that one waits for no child process on every system."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Run it on the loop. Cancelling the future cancels it, wherever it waits."""
        return asyncio.run_coroutine_threadsafe(work, self._ensure_loop())

    def close(self) -> None:
        """Cancel all work, wait until it has ended, and end the thread."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_end_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="layby-tools", daemon=True
            )
            self._thread.start()
        return self._loop


async def _end_all() -> None:
    mine = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not mine]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
