"""The local server as the window knows it: on, off or ending, and why it did not start. GUI thread, asyncio.

No web framework: the composition root hands in how a server is made. What blocks runs in a worker thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Protocol

from studio.models.errors import PortTaken, ServerStartError, SettingError
from studio.models.request_log import RequestLog, RequestRow
from studio.models.signal import Signal
from studio.services.key_store import KeyStore
from studio.services.notice_service import NoticeService
from studio.services.settings_service import SettingsService


class StartableServer(Protocol):
    """What `studio.server.thread.ServerThread` is to this service."""

    @property
    def url(self) -> str: ...

    def start(self) -> None:
        """Raises ServerStartError when the settings do not allow it."""

    def finish(self) -> None:
        """Take no more requests; returns when those under way have ended, or `stop` was called."""

    def stop(self) -> None: ...


class ServerState(Enum):
    """What the switch shows."""

    OFF = "off"
    STARTING = "starting"
    ON = "on"
    FINISHING = "finishing"
    """It takes no more requests, and ends with the last of those under way."""
    STOPPING = "stopping"


class ServerService:
    """One server at most. Each start makes it anew, so that changed settings count."""

    def __init__(
        self,
        make_server: Callable[[], StartableServer],
        notices: NoticeService,
        *,
        settings: SettingsService,
        keys: KeyStore,
        log: RequestLog,
    ) -> None:
        self.changed: Signal[[]] = Signal()
        """`state`, `address` or `problem` changed."""
        self.state = ServerState.OFF
        self.problem: ServerStartError | None = None
        """Why a start would fail now, as the last one did; PortTaken has another port to offer."""
        self.keys = keys
        self.log = log
        self._make_server = make_server
        self._notices = notices
        self._settings = settings
        self._server: StartableServer | None = None
        self._started_with: object = None
        self._failed_with: object = None
        self._switching = asyncio.Lock()
        settings.changed.connect(lambda _settings: self._on_wants_changed())
        keys.changed.connect(self._on_wants_changed)

    @property
    def address(self) -> str | None:
        """Like `http://127.0.0.1:8484` while the server listens, else None."""
        return self._server.url if self._server is not None else None

    @property
    def needs_restart(self) -> bool:
        """Whether it listens by settings that have been changed since."""
        return self._server is not None and self._started_with != self._wanted()

    def requests_under_way(self) -> tuple[RequestRow, ...]:
        """The requests for text that have not ended."""
        return tuple(row for row in self.log.rows if row.run_ids and not row.is_over)

    async def start(self) -> None:
        """Listen at the address of the settings; why not is `problem`, and a notice. Nothing if it listens already."""
        async with self._switching:
            if self._server is not None:
                return
            self._show(ServerState.STARTING)
            wanted = self._wanted()
            try:
                server = await asyncio.to_thread(self._begin)
            except ServerStartError as error:
                self.problem, self._failed_with = error, (wanted, bool(self.keys.keys))
                self._notices.report(error)
                self._show(ServerState.OFF)
                return
            self._server, self._started_with = server, wanted
            self._forget_problem()
            self._show(ServerState.ON)

    def _begin(self) -> StartableServer:
        """In a worker thread: what a server is made of may have to be read from the disk first."""
        server = self._make_server()
        server.start()
        return server

    async def start_at(self, port: int) -> None:
        """Keep another port and listen there."""
        try:
            self._settings.change("server.port", port)
        except SettingError as error:
            self._notices.report(error)
            return
        await self.start()

    async def restart(self) -> None:
        """Listen by the settings as they are now; requests under way end."""
        await self.stop()
        await self.start()

    async def finish(self) -> None:
        """Take no more requests, and stop when those under way have ended. `stop` meanwhile ends them."""
        server = self._server
        if server is None or self.state is not ServerState.ON:
            return
        self._show(ServerState.FINISHING)
        await asyncio.to_thread(server.finish)
        if self._server is server:
            await self.stop()

    async def stop(self) -> None:
        """Listen no more; requests of programs end."""
        async with self._switching:
            server = self._server
            if server is None:
                return
            self._show(ServerState.STOPPING)
            await asyncio.to_thread(server.stop)
            self._server = None
            self._show(ServerState.OFF)

    def _wanted(self) -> object:
        """What the server would be started with, as far as a change of it needs a new start."""
        server = self._settings.settings.server
        return (
            server.host,
            server.port,
            server.api_key,
            server.cors_origins,
            server.lets_local_in,
            server.keeps_prompts,
            server.sse_ping_interval,
        )

    def _on_wants_changed(self) -> None:
        """What was wrong with the address or for want of a key may be wrong no more."""
        if self.problem is not None and self._failed_with != (self._wanted(), bool(self.keys.keys)):
            self._forget_problem()
            self.changed.emit()

    def _forget_problem(self) -> None:
        self.problem = None
        self._notices.resolve(ServerStartError.code)
        self._notices.resolve(PortTaken.code)

    def _show(self, state: ServerState) -> None:
        self.state = state
        self.changed.emit()
