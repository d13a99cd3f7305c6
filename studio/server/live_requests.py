"""The work done for connected clients: it ends as soon as its client leaves or the server stops. Server thread only."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from studio.server.errors import ClientLeft, server_stopping

T = TypeVar("T")


class LiveRequests:
    """Runs the work of each request as a task of its own and knows all of them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_stopping = False
        self._nothing_runs = asyncio.Event()
        self._nothing_runs.set()

    async def run(self, work: Coroutine[Any, Any, T], *, receive: Receive | None) -> T:
        """The result of `work`; it is cancelled, and has ended, when this raises.

        With `receive` (the request's, its body already read) the client is watched meanwhile. Raises ClientLeft,
        the server-is-stopping ApiError, or what `work` raises.
        """
        task = asyncio.create_task(work)
        tasks: list[asyncio.Task[Any]] = [task]
        if receive is not None:
            tasks.append(asyncio.create_task(_wait_for_departure(receive)))
        self._tasks.add(task)
        self._nothing_runs.clear()
        if self._is_stopping:
            task.cancel()
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ClientLeft
            if task.cancelled():
                raise server_stopping()
            return task.result()
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self._nothing_runs.set()
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Start nothing new, and return when what runs has ended."""
        self._is_stopping = True
        await self._nothing_runs.wait()

    def stop_all(self) -> None:
        """End everything that runs, and from now on whatever would start."""
        self._is_stopping = True
        for task in self._tasks:
            task.cancel()


async def _wait_for_departure(receive: Receive) -> None:
    """Ends when the client has closed its side, also if only that: nothing tells it from one that has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
