"""A thread with a loop of its own, for what must hold up no window: downloads, servers of tools.

`LoopThread` is used from the GUI thread; only what is submitted runs on its loop. It starts with the first work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class LoopThread:
    """A plain asyncio loop: that of the window waits for no child process on every system."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Run it on the loop. Cancelling the future cancels it, wherever it waits."""
        return asyncio.run_coroutine_threadsafe(work, self._ensure_loop())

    def close(self, last: Callable[[], Awaitable[object]] | None = None) -> None:
        """Cancel all work, wait until it has ended, do what is to be done `last` on the loop, and end the thread."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_end_all(last), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name=self._name, daemon=True
            )
            self._thread.start()
        return self._loop


async def _end_all(last: Callable[[], Awaitable[object]] | None) -> None:
    mine = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not mine]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if last is not None:
        await last()
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
