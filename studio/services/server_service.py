"""The local server's switch as the window knows it. GUI thread, asyncio; a worker does what blocks.

No web framework: the composition root hands in how a server is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from studio.models.errors import ServerStartError
from studio.models.signal import Signal
from studio.services.notice_service import NoticeService


class StartableServer(Protocol):
    """What `studio.server.thread.ServerThread` is to this service."""

    @property
    def url(self) -> str: ...

    def start(self) -> None:
        """Raises ServerStartError when the settings do not allow it."""

    def stop(self) -> None: ...


class ServerService:
    """One server at most. Each start makes it anew, so that changed settings count."""

    def __init__(self, make_server: Callable[[], StartableServer], notices: NoticeService) -> None:
        self.changed: Signal[[]] = Signal()
        """`address` changed."""
        self._make_server = make_server
        self._notices = notices
        self._server: StartableServer | None = None
        self._switching = asyncio.Lock()

    @property
    def address(self) -> str | None:
        """Like `http://127.0.0.1:8484` while the server listens, else None."""
        return self._server.url if self._server is not None else None

    async def start(self) -> None:
        """Listen at the address of the settings; why not becomes a notice. Does nothing when it listens already."""
        async with self._switching:
            if self._server is not None:
                return
            try:
                server = self._make_server()
                await asyncio.to_thread(server.start)
            except ServerStartError as error:
                self._notices.report(error)
                return
            self._server = server
            self._notices.resolve(ServerStartError.code)
        self.changed.emit()

    async def stop(self) -> None:
        """Listen no more; requests of programs end."""
        async with self._switching:
            server, self._server = self._server, None
            if server is None:
                return
            await asyncio.to_thread(server.stop)
        self.changed.emit()
