"""The downloads' thread and its one HTTP client, so that no window and no stream ever waits for the network.

`DownloadThread` is used from the GUI thread; only what is submitted runs on its loop. It starts with the first work,
and only then is httpx imported, which takes a tenth of the time until there is a window.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from studio.services.loop_thread import LoopThread

if TYPE_CHECKING:
    import httpx

_T = TypeVar("_T")

_CONNECT_S = 15.0
_ANSWER_S = 30.0
_MOST_CONNECTIONS = 8


class DownloadThread:
    """`client` lives on its loop and follows the system's proxies."""

    def __init__(self) -> None:
        self._thread = LoopThread("layby-downloads")
        self._client: httpx.AsyncClient | None = None

    def submit(self, make: Callable[[httpx.AsyncClient], Coroutine[Any, Any, _T]]) -> Future[_T]:
        """Run `make(client)` on the loop. Cancelling the future cancels it, wherever it waits."""

        async def run() -> _T:
            if self._client is None:
                self._client = _make_client()
            return await make(self._client)

        return self._thread.submit(run())

    def close(self) -> None:
        """Cancel all work and end the thread."""
        self._thread.close(self._close_client)

    async def _close_client(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None


def _make_client() -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(
        timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S),
        limits=httpx.Limits(max_connections=_MOST_CONNECTIONS),
        follow_redirects=True,
    )
