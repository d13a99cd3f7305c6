"""The declared servers of tools on disk, in the form that other programs use too.

GUI thread, no Qt. Only the user may read the file: variables and headers are often secrets.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from engine.system_faults import system_fault
from studio.models.errors import ToolServerError
from studio.models.json_faults import json_fault
from studio.models.signal import Signal
from studio.models.tool_servers import ToolServer
from studio.services.safe_file import set_aside, write_atomically
from studio.services.tools.server_json import MOST_SERVERS, format_servers, parse_servers

_log = logging.getLogger(__name__)


class ToolServerStore:
    """`servers` in the order they were added. A broken file is set aside: there are none then, as `problem` says."""

    def __init__(self, path: Path) -> None:
        self.changed: Signal[[]] = Signal()
        """`servers` changed."""
        self.problem: ToolServerError | None = None
        self._path = path
        self.servers: tuple[ToolServer, ...] = self._read()

    def find(self, name: str) -> ToolServer | None:
        """The server of that name."""
        return next((one for one in self.servers if one.name == name), None)

    def add(self, servers: tuple[ToolServer, ...]) -> None:
        """Add servers, all or none. Raises ToolServerError: a name is taken, they are too many, or cannot be stored."""
        names = {one.name.casefold() for one in self.servers}
        for server in servers:
            if server.name.casefold() in names:
                raise ToolServerError(
                    f"there is a server called {server.name!r} already; take another name"
                )
            names.add(server.name.casefold())
        if len(names) > MOST_SERVERS:
            raise ToolServerError(
                f"these would be {len(names)} servers, the most is {MOST_SERVERS}"
            )
        self._write((*self.servers, *servers))

    def change(self, name: str, changed: ToolServer) -> None:
        """Put another declaration in the place of one; its name stays, since chats know it. Raises ToolServerError."""
        changed = replace(changed, name=name)
        self._write(tuple(changed if one.name == name else one for one in self.servers))

    def switch(self, name: str, *, is_on: bool) -> None:
        """Switch a server on or off. Raises ToolServerError if that cannot be stored."""
        self._write(
            tuple(replace(one, is_on=is_on) if one.name == name else one for one in self.servers)
        )

    def remove(self, name: str) -> None:
        """Forget a server. Raises ToolServerError if that cannot be stored."""
        self._write(tuple(one for one in self.servers if one.name != name))

    def _write(self, servers: tuple[ToolServer, ...]) -> None:
        try:
            write_atomically(self._path, format_servers(servers).encode("utf-8", "replace"))
        except OSError as error:
            raise ToolServerError(
                f"the servers of tools cannot be written to {self._path} ({system_fault(error)}); "
                "make room or make it writable, then try again"
            ) from error
        self.servers = servers
        self.changed.emit()

    def _read(self) -> tuple[ToolServer, ...]:
        try:
            text = self._path.read_text("utf-8")
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as error:
            fault = system_fault(error) if isinstance(error, OSError) else json_fault(error)
            self.problem = ToolServerError(
                f"the servers of tools in {self._path} cannot be read: {fault}"
            )
            return ()
        try:
            return parse_servers(text) if text.split() != ["{", '"mcpServers":', "{}", "}"] else ()
        except ToolServerError as error:
            aside = set_aside(self._path)
            _log.warning("the file of servers of tools was not readable (%s): %s", error, aside)
            self.problem = ToolServerError(
                f"the file of servers of tools was not readable; it is kept as {aside}, add them again"
            )
        return ()
