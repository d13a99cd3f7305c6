"""One server of tools, spoken with by the official `mcp` package. Lives on the loop of the tools' thread.

The package takes a second or two to import and is not touched before the first server is started. One task opens the
connection, keeps it and closes it again, as the package's scopes want it; a program's processes end with it.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING, Any

from studio.models.errors import ToolServerError
from studio.models.tool_servers import ToolFacts, ToolServer
from studio.services.tools.answers import ToolAnswer, answer_of, shortened
from studio.services.tools.link_faults import link_fault, no_answer, told
from studio.services.tools.own_programs import MARK, end_marked, new_mark

if TYPE_CHECKING:
    from mcp.client.client import Client

START_TIMEOUT_S = 30.0
"""A program that is fetched at its first start by its own package manager takes longer; it is tried again then."""

_MOST_TOOLS = 500
_MOST_SAID_CHARS = 500
"""Of what a program has said on its standard error, as much is told with a failure."""


class ToolLink:
    """`open` once, then `call`; `close` in the end, also after a failure."""

    def __init__(self, server: ToolServer, *, start_timeout_s: float = START_TIMEOUT_S) -> None:
        self.server = server
        self._start_timeout_s = start_timeout_s
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._has_gone = False
        self._mark = new_mark()
        """In the environment of a program, and so of all that it starts."""

    async def open(self) -> tuple[ToolFacts, ...]:
        """Start or reach the server; its tools. Raises ToolServerError, in words."""
        ready: asyncio.Future[tuple[ToolFacts, ...]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._run(ready))
        try:
            return await ready
        except asyncio.CancelledError:
            await self.close()
            raise

    async def call(self, tool: str, arguments: dict[str, Any], *, timeout_s: float) -> ToolAnswer:
        """Run a tool. Raises ToolServerError if the server refuses, is gone, or takes too long."""
        client = self._client
        if client is None:
            raise ToolServerError(f"{self.server.name} is not connected any more; try again")
        try:
            async with asyncio.timeout(timeout_s):
                result = await client.call_tool(tool, arguments)
        except TimeoutError as error:
            raise ToolServerError(
                f"{self.server.name} did not answer {tool} within {timeout_s:g} s; it was given up"
            ) from error
        except Exception as error:  # whatever the package raises, it is this call's trouble
            self._has_gone |= _is_end(error)
            raise ToolServerError(told(self.server.name, link_fault(error), "")) from error
        plain = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return answer_of(plain)

    @property
    def is_open(self) -> bool:
        """Whether it can be called, as far as is known."""
        return self._client is not None and not self._has_gone

    async def close(self) -> None:
        """End the connection, and the program with all that it has started."""
        self._closing.set()
        if self._task is not None:
            if self._client is None:
                self._task.cancel()
            await asyncio.wait({self._task})
        if self.server.is_program:
            await asyncio.to_thread(end_marked, self._mark)

    # --- how

    async def _run(self, ready: asyncio.Future[tuple[ToolFacts, ...]]) -> None:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            try:
                async with self._connected(said) as (client, tools):
                    self._client = client
                    ready.set_result(tools)
                    await self._closing.wait()
            except TimeoutError:
                _fail(ready, self._words(no_answer(self._start_timeout_s), said))
            except Exception as error:  # noqa: BLE001 - whatever the package raises, it is this server's trouble
                _fail(ready, self._words(link_fault(error), said))
            finally:
                self._client = None
                if not ready.done():
                    ready.cancel()

    @asynccontextmanager
    async def _connected(
        self, said: IO[str]
    ) -> AsyncIterator[tuple[Client, tuple[ToolFacts, ...]]]:
        client_class = await asyncio.to_thread(_import_client)
        async with self._transport(said) as transport:
            client = client_class(transport)
            async with asyncio.timeout(self._start_timeout_s):
                await client.__aenter__()
            try:
                async with asyncio.timeout(self._start_timeout_s):
                    tools = await _list_tools(client)
                yield client, tools
            finally:
                await client.__aexit__(None, None, None)

    @asynccontextmanager
    async def _transport(self, said: IO[str]) -> AsyncIterator[Any]:
        server = self.server
        if server.is_program:
            from mcp.client.stdio import StdioServerParameters, stdio_client

            parameters = StdioServerParameters(
                command=server.command,
                args=list(server.args),
                env={**dict(server.env), MARK: self._mark},
                cwd=server.folder or None,
            )
            yield stdio_client(parameters, errlog=said)  # type: ignore[arg-type]
            return
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        timeout = httpx2.Timeout(self._start_timeout_s, read=300.0)
        async with httpx2.AsyncClient(headers=dict(server.headers), timeout=timeout) as client:
            yield streamable_http_client(server.url, http_client=client)

    def _words(self, reason: str, said: IO[str]) -> ToolServerError:
        said.seek(0)
        last = said.read()[-_MOST_SAID_CHARS:].strip()
        return ToolServerError(told(self.server.name, reason, last))


def _import_client() -> type[Client]:
    from mcp.client.client import Client

    return Client


async def _list_tools(client: Client) -> tuple[ToolFacts, ...]:
    found: list[ToolFacts] = []
    cursor: str | None = None
    while len(found) < _MOST_TOOLS:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            found.append(
                ToolFacts(
                    name=tool.name,
                    title=tool.title or "",
                    description=shortened(tool.description or "", 10_000),
                    parameters=json.dumps(tool.input_schema, ensure_ascii=False),
                )
            )
        cursor = page.next_cursor
        if not cursor:
            break
    return tuple(found)


def _fail(ready: asyncio.Future[tuple[ToolFacts, ...]], error: ToolServerError) -> None:
    if not ready.done():
        ready.set_exception(error)


def _is_end(error: BaseException) -> bool:
    """Whether the connection has ended, as against a call that the server has refused."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import CONNECTION_CLOSED

    return not isinstance(error, MCPError) or error.error.code == CONNECTION_CLOSED
