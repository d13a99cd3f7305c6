"""The servers of tools: declared ones are started when a chat needs them, called, and stopped at the end.

GUI thread, asyncio, no Qt. The servers themselves live on the loop of the tools' thread; nothing of them, neither
thread nor process nor socket, is there before the first is needed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

from studio.models.errors import ToolServerError
from studio.models.json_faults import json_fault
from studio.models.signal import Signal
from studio.models.tool_servers import LinkState, LinkStatus, ToolFacts, ToolServer
from studio.services.loop_thread import LoopThread
from studio.services.tools.answers import ToolAnswer
from studio.services.tools.server_store import ToolServerStore
from studio.services.tools.tool_link import START_TIMEOUT_S, ToolLink

_T = TypeVar("_T")
_OFF = LinkStatus()


class ToolService:
    """`store` has what is declared; a server that is switched off there is never started."""

    def __init__(self, path: Path, *, start_timeout_s: float = START_TIMEOUT_S) -> None:
        self.changed: Signal[[str]] = Signal()
        """How the server of that name stands has changed."""
        self.store = ToolServerStore(path)
        self._start_timeout_s = start_timeout_s
        self._thread = LoopThread("layby-tools")
        self._links: dict[str, ToolLink] = {}
        self._status: dict[str, LinkStatus] = {}
        self._opening: dict[str, asyncio.Task[None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._known: dict[str, tuple[ToolFacts, ...]] = {}
        """What each server offered when it was last ready."""
        self.store.changed.connect(self._on_declared)

    def status(self, name: str) -> LinkStatus:
        """How a server stands."""
        return self._status.get(name, _OFF)

    def known_tools(self, names: Iterable[str]) -> dict[str, tuple[ToolFacts, ...]]:
        """What those servers that are switched on offered when they were last heard of; nothing is started."""
        wanted = self._switched_on(names)
        return {one.name: self._known[one.name] for one in wanted if one.name in self._known}

    def start_soon(self, names: Iterable[str]) -> None:
        """Start those of them that were not asked for yet; what comes of it is in their status."""
        for server in self._switched_on(names):
            if self.status(server.name) == _OFF:
                task = asyncio.get_running_loop().create_task(self._open(server))
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)

    async def hear_of(self, names: Iterable[str]) -> None:
        """The same, and return when they have started or failed; those that had failed before are left alone."""
        waiting = (LinkState.OFF, LinkState.STARTING)
        wanted = [one for one in self._switched_on(names) if self.status(one.name).state in waiting]
        await asyncio.gather(*map(self._open, wanted))

    async def tools_of(self, names: Iterable[str]) -> dict[str, tuple[ToolFacts, ...]]:
        """The tools of those servers that are switched on, which are started where they are not running.

        One that does not start is not among them; its status says why.
        """
        wanted = self._switched_on(names)
        await asyncio.gather(*map(self._open, wanted))
        ready = {server.name: self.status(server.name) for server in wanted}
        return {name: one.tools for name, one in ready.items() if one.state is LinkState.READY}

    async def call(
        self, server_name: str, tool: str, arguments: str, *, timeout_s: float
    ) -> ToolAnswer:
        """Run a tool with arguments as JSON text, starting its server if need be.

        Raises ToolServerError if that cannot be done, in words that the model may read too.
        """
        values = _parsed(arguments)
        server = self.store.find(server_name)
        if server is None or not server.is_on:
            raise ToolServerError(
                f"the server of tools {server_name!r} is not there or switched off"
            )
        await self._open(server)
        link, status = self._links.get(server_name), self.status(server_name)
        if link is None or status.state is not LinkState.READY:
            raise ToolServerError(status.problem or f"{server_name} does not answer")
        if tool not in {one.name for one in status.tools}:
            raise ToolServerError(f"{server_name} has no tool called {tool!r}")
        try:
            return await self._there(link.call(tool, values, timeout_s=timeout_s))
        finally:
            if not link.is_open:
                self._lose(link)

    async def test(self, server: ToolServer) -> tuple[ToolFacts, ...]:
        """The tools of a server as it is given, declared or not; it is stopped again. Raises ToolServerError."""
        link = ToolLink(server, start_timeout_s=self._start_timeout_s)
        try:
            return await self._there(link.open())
        finally:
            await self._there(link.close())

    async def restart(self, name: str) -> None:
        """Stop a server and start it again, if it is switched on."""
        await self._stop(name)
        await self.tools_of([name])

    async def close(self) -> None:
        """Stop all servers, with the processes that they have started."""
        await asyncio.gather(*map(self._stop, list(self._links)))
        if self._stopping:
            await asyncio.wait(self._stopping)
        await asyncio.to_thread(self._thread.close)

    # --- how

    def _switched_on(self, names: Iterable[str]) -> list[ToolServer]:
        return [one for one in map(self.store.find, names) if one is not None and one.is_on]

    async def _there(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do it on the loop of the servers."""
        return await asyncio.wrap_future(self._thread.submit(work))

    async def _open(self, server: ToolServer) -> None:
        """Start it once for all who want it; its status says what came of it."""
        link = self._links.get(server.name)
        if link is not None and not link.is_open and server.name not in self._opening:
            self._lose(link)
        if server.name not in self._links:
            self._links[server.name] = ToolLink(server, start_timeout_s=self._start_timeout_s)
            task = asyncio.get_running_loop().create_task(self._start(server.name))
            self._opening[server.name] = task
        if (opening := self._opening.get(server.name)) is not None:
            await asyncio.shield(opening)

    async def _start(self, name: str) -> None:
        link = self._links[name]
        self._tell(name, LinkStatus(state=LinkState.STARTING))
        try:
            tools = await self._there(link.open())
        except ToolServerError as error:
            failed = LinkStatus(state=LinkState.FAILED, problem=str(error))
            if self._links.get(name) is link:
                del self._links[name]
                self._tell(name, failed)
        else:
            if self._links.get(name) is link:
                self._tell(name, LinkStatus(state=LinkState.READY, tools=tools))
        finally:
            del self._opening[name]

    async def _stop(self, name: str) -> None:
        if (link := self._links.pop(name, None)) is None:
            return
        await self._there(link.close())
        if (opening := self._opening.get(name)) is not None:
            await asyncio.wait({opening})
        if name not in self._links:
            self._tell(name, _OFF)

    def _lose(self, link: ToolLink) -> None:
        """A server has gone by itself; it is started anew when it is needed again."""
        name = link.server.name
        if self._links.get(name) is link:
            del self._links[name]
            problem = f"{name}: the connection ended; it is started again when a chat needs it"
            self._tell(name, LinkStatus(state=LinkState.FAILED, problem=problem))
            self._stop_later(link)

    def _stop_later(self, link: ToolLink) -> None:
        task = asyncio.get_running_loop().create_task(self._there(link.close()))
        self._stopping.add(task)
        task.add_done_callback(self._stopping.discard)

    def _on_declared(self) -> None:
        """Stop what is switched off, changed or gone; a chat starts it again as it is now."""
        for name, link in tuple(self._links.items()):
            declared = self.store.find(name)
            if declared is None or not declared.is_on or declared != link.server:
                self._known.pop(name, None)
                task = asyncio.get_running_loop().create_task(self._stop(name))
                self._stopping.add(task)
                task.add_done_callback(self._stopping.discard)
        for name, status in tuple(self._status.items()):
            declared = self.store.find(name)
            if status.state is LinkState.FAILED and (declared is None or not declared.is_on):
                self._tell(name, _OFF)
            if declared is None:
                del self._status[name]

    def _tell(self, name: str, status: LinkStatus) -> None:
        self._status[name] = status
        if status.state is LinkState.READY:
            self._known[name] = status.tools
        self.changed.emit(name)


def _parsed(arguments: str) -> dict[str, Any]:
    """Raises ToolServerError for what is no JSON object."""
    try:
        values = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as error:
        raise ToolServerError(f"the arguments are no JSON: {json_fault(error)}") from error
    if not isinstance(values, dict):
        raise ToolServerError("the arguments are no JSON object")
    return values
