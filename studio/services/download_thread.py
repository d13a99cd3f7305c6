"""A thread with a loop of its own for what comes over the network, so that no window and no stream ever waits for it.

`DownloadThread` is used from the GUI thread; only what is submitted runs on its loop. It starts with the first work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import httpx

_T = TypeVar("_T")

_TIMEOUT = httpx.Timeout(30.0, connect=15.0)
_LIMITS = httpx.Limits(max_connections=8)


class DownloadThread:
    """`client` lives on its loop and follows the system's proxies."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._client: httpx.AsyncClient | None = None

    def submit(self, make: Callable[[httpx.AsyncClient], Coroutine[Any, Any, _T]]) -> Future[_T]:
        """Run `make(client)` on the loop. Cancelling the future cancels it, wherever it waits."""
        loop = self._ensure_loop()

        async def run() -> _T:
            if self._client is None:
                self._client = httpx.AsyncClient(
                    timeout=_TIMEOUT, limits=_LIMITS, follow_redirects=True
                )
            return await make(self._client)

        return asyncio.run_coroutine_threadsafe(run(), loop)

    def close(self) -> None:
        """Cancel all work and end the thread."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _ensure_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="layby-downloads", daemon=True
            )
            self._thread.start()
        return self._loop

    async def _end(self) -> None:
        mine = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not mine]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
            self._client = None
        await asyncio.get_running_loop().shutdown_default_executor()
