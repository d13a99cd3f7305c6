"""The server's own thread: uvicorn on a plain asyncio loop, so that a stall of the window never stalls a stream.

`ServerThread` is used from the thread that owns it; only `_run` and `_serve` run on the server's.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import uvicorn
from fastapi import FastAPI

from engine.api import EnginePort
from engine.client import EngineClient
from engine.system_faults import system_fault
from studio.models.errors import PortTaken, ServerStartError
from studio.models.server_settings import ServerSettings
from studio.server.app import build_app
from studio.server.connection import ConnectionLimits, GuardedConnection
from studio.server.context import ServerContext
from studio.server.live_requests import LiveRequests
from studio.server.parts import ServerParts
from studio.server.share_gate import ShareGate
from studio.server.sse import StreamTimings

THREAD_NAME = "layby-server"
GRACE_S = 2
"""How long connections may take to end once the server stops; then they are cut."""
_CUT_S = 5
"""What uvicorn, which makes an error of it, gives connections beyond that; to be cut takes none of it."""
_PORTS_TRIED = 50
_LOOK_S = 0.2

logger = logging.getLogger(__name__)


class ServerThread:
    """The HTTP server, on or off; it may be started again after a stop."""

    def __init__(
        self,
        engine: EnginePort,
        settings: ServerSettings,
        *,
        parts: ServerParts | None = None,
        timings: StreamTimings | None = None,
        limits: ConnectionLimits | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._parts = parts or ServerParts()
        self._timings = timings or StreamTimings.of_ping_interval(settings.sse_ping_interval_s)
        self._limits = limits or ConnectionLimits()
        self._thread: threading.Thread | None = None
        self._stop_switch: _StopSwitch | None = None
        self._port = settings.port

    @property
    def address(self) -> tuple[str, int]:
        """The host as set, and the port that was taken (as set, before the start)."""
        return self._settings.host, self._port

    @property
    def url(self) -> str:
        host, port = self.address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Listen; clients can connect when this returns. Raises ServerStartError when that is not possible."""
        if self.is_running:
            raise ServerStartError(f"the server is already running at {self.url}; stop it first")
        listener = _listen(self._settings, has_key=bool(self._parts.keys.keys))
        self._port = listener.getsockname()[1]
        started: Future[_StopSwitch] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(listener, started), name=THREAD_NAME, daemon=True
        )
        self._thread.start()
        self._stop_switch = started.result()
        logger.info("listening on %s", self.url)

    def finish(self) -> None:
        """Take no more requests, and return when those under way have ended, or `stop` has been called meanwhile."""
        if self._stop_switch is not None:
            self._stop_switch.finish()

    def stop(self) -> None:
        """End all streams and the thread, in little more than GRACE_S seconds. Does nothing when it is not running."""
        if self._thread is None or self._stop_switch is None:
            return
        if self._thread.is_alive():
            self._stop_switch.press()
        self._thread.join()
        self._thread = self._stop_switch = None
        logger.info("no longer listening on %s", self.url)

    def _run(self, listener: socket.socket, started: Future[_StopSwitch]) -> None:
        try:
            with asyncio.Runner() as runner, listener:
                runner.run(self._serve(listener, started))
        finally:
            if not started.done():
                started.set_exception(
                    ServerStartError("the server ended before it began; its log says why")
                )

    async def _serve(self, listener: socket.socket, started: Future[_StopSwitch]) -> None:
        loop = asyncio.get_running_loop()
        client = EngineClient(self._engine, loop, is_quick=True)
        parts = self._parts
        context = ServerContext(
            client=client,
            gate=ShareGate(client),
            timings=self._timings,
            limits=self._limits,
            demand=parts.make_demand() if parts.make_demand is not None else None,
            keeps_prompts=self._settings.keeps_prompts,
        )
        app = build_app(context, self._settings, keys=parts.keys, log=parts.log)
        server = _QuietServer(
            _uvicorn_config(app, self._limits),
            on_started=lambda: started.set_result(_StopSwitch(loop, server, context.live)),
        )
        try:
            await server.serve(sockets=[listener])
        finally:
            client.close()


class _QuietServer(uvicorn.Server):
    """uvicorn without its hands on the process: signals belong to the main thread."""

    def __init__(self, config: uvicorn.Config, *, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def cut_all(self) -> None:
        """End every connection, also where the client takes nothing of what is left for it."""
        for connection in tuple(self.server_state.connections):
            if isinstance(connection, GuardedConnection):
                connection.transport.abort()


@dataclass(frozen=True, slots=True)
class _StopSwitch:
    """What another thread needs to end a running server."""

    loop: asyncio.AbstractEventLoop
    server: _QuietServer
    live: LiveRequests

    def press(self) -> None:
        self.loop.call_soon_threadsafe(self._stop)

    def finish(self) -> None:
        """Wait on another thread until all requests have ended; a loop that closes ends the wait."""
        have_ended = threading.Event()
        tasks: list[asyncio.Task[None]] = []  # a loop alone does not keep its tasks

        def begin() -> None:
            tasks.append(self.loop.create_task(self.live.finish()))
            tasks[0].add_done_callback(lambda _task: have_ended.set())

        with suppress(RuntimeError):  # it is closed already
            self.loop.call_soon_threadsafe(begin)
        while not have_ended.wait(_LOOK_S) and not self.loop.is_closed():
            pass

    def _stop(self) -> None:
        self.live.stop_all()
        self.server.should_exit = True
        self.loop.call_later(GRACE_S, self.server.cut_all)


def _uvicorn_config(app: FastAPI, limits: ConnectionLimits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=partial(GuardedConnection, limits=limits),  # type: ignore[arg-type]  # it is only called
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=limits.idle_s,
        timeout_graceful_shutdown=GRACE_S + _CUT_S,
    )


def _listen(settings: ServerSettings, *, has_key: bool) -> socket.socket:
    """A bound, listening socket. Raises ServerStartError, with the remedy; PortTaken with another port."""
    host, port = settings.host, settings.port
    if not settings.is_loopback and not settings.api_key and not has_key:
        raise ServerStartError(
            f"{host} can be reached from other machines, so an API key is needed; set one, or listen on 127.0.0.1"
        )
    try:
        family, kind, protocol, _, address = _resolve(host, port)
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ServerStartError(f"the host {host!r} is unknown here; use 127.0.0.1") from error
    try:
        # Windows' SO_REUSEADDR would let two programs have one port.
        if sys.platform == "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise _bind_problem(error, settings) from error
    return listener


def _free_port_after(settings: ServerSettings) -> int:
    """The next one that nobody listens at; 0, any, where none of the next few is free."""
    for port in range(settings.port + 1, min(settings.port + _PORTS_TRIED, 65536)):
        try:
            family, kind, protocol, _, address = _resolve(settings.host, port)
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
        except OSError:
            continue
        return port
    return 0


def _resolve(host: str, port: int) -> tuple[int, int, int, str, tuple[str | int | bytes, ...]]:
    """The first address of `host`, IPv4 before IPv6: what programs mean that say localhost."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return min(found, key=lambda each: each[0] != socket.AF_INET)


def _bind_problem(error: OSError, settings: ServerSettings) -> ServerStartError:
    host, port = settings.host, settings.port
    if error.errno == errno.EADDRINUSE:
        return PortTaken(
            f"port {port} on {host} is taken by another program; choose another, or 0 for a free one",
            port=port,
            free_port=_free_port_after(settings),
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return ServerStartError(
            f"port {port} on {host} is not allowed for this user; choose one above 1023"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return ServerStartError(f"{host} is no address of this machine; use 127.0.0.1")
    return ServerStartError(
        f"cannot listen on port {port} of {host} ({system_fault(error)}); choose another port"
    )
