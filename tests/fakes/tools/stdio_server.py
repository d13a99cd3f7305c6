"""A small MCP server for tests, over stdio; run as a program.

`--pid FILE` writes its process id, `--child` starts a process of its own beside it, `--never` answers nothing,
`--noon` has one small tool alone.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import Image, MCPServer


def make_server() -> MCPServer:
    """Tools that add, look, fail, take their time, and end the server."""
    server = MCPServer("weather")

    @server.tool()
    def weather(city: str, days: int = 1) -> str:
        """The weather in a city."""
        return f"{days} sunny days in {city}, {os.environ.get('LAYBY_TEST_MOOD', 'as usual')}"

    @server.tool()
    def picture() -> Image:
        """A picture."""
        return Image(data=b"12345", format="png")

    @server.tool()
    def long(chars: int) -> str:
        """A long answer."""
        return "x" * chars

    @server.tool()
    def broken() -> str:
        """Fails."""
        raise ValueError("the barometer is broken")

    @server.tool()
    def slow(path: str) -> str:
        """Writes a file, then takes an hour."""
        Path(path).write_text("here", encoding="utf-8")
        time.sleep(3600)
        return "late"

    @server.tool()
    def leave() -> str:
        """Ends the server."""
        os._exit(3)

    return server


def make_clock() -> MCPServer:
    """One tool without arguments."""
    server = MCPServer("clock")

    @server.tool()
    def noon() -> str:
        """Tells the time."""
        return "It is noon."

    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pid", type=Path)
    parser.add_argument("--child", type=Path)
    parser.add_argument("--never", action="store_true")
    parser.add_argument("--noon", action="store_true")
    options = parser.parse_args()
    if options.pid is not None:
        options.pid.write_text(str(os.getpid()), encoding="utf-8")
    if options.child is not None:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        options.child.write_text(str(child.pid), encoding="utf-8")
    if options.never:
        sys.stderr.write("I never answer\n")
        sys.stderr.flush()
        time.sleep(3600)
    (make_clock() if options.noon else make_server()).run("stdio")


if __name__ == "__main__":
    main()
