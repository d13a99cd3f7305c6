"""Servers of tools as JSON, in the form that most programs have in common (`mcpServers`). Pure; any thread.

Source: the configuration files of Claude Desktop, Cursor, Windsurf ("mcpServers") and VS Code ("servers"), as of 2026.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from studio.models.errors import ToolServerError
from studio.models.json_faults import json_fault
from studio.models.tool_servers import ToolServer

MOST_SERVERS = 100
_MOST_CHARS = 1 << 20
_OUTER = ("mcpServers", "servers", "mcp_servers")
_URLS = ("url", "serverUrl", "httpUrl")


def parse_servers(text: str) -> tuple[ToolServer, ...]:
    """The servers in pasted or stored JSON, with or without what is around them in other programs' files.

    Raises ToolServerError, saying what is wrong where.
    """
    if len(text) > _MOST_CHARS:
        raise ToolServerError(f"this is {len(text):,} characters long, the most is {_MOST_CHARS:,}")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolServerError(f"this is no JSON: {json_fault(error)}") from error
    entries = _entries(data)
    if not entries:
        raise ToolServerError(
            'no server is in this; it should look like {"mcpServers": {"name": {"command": "…"}}}'
        )
    if len(entries) > MOST_SERVERS:
        raise ToolServerError(f"these are {len(entries)} servers, the most is {MOST_SERVERS}")
    return tuple(_server(str(name), entry) for name, entry in entries.items())


def format_servers(servers: Iterable[ToolServer]) -> str:
    """The JSON that `parse_servers` reads, the same servers in the same order."""
    entries = {server.name: _entry(server) for server in servers}
    return json.dumps({"mcpServers": entries}, ensure_ascii=False, indent=2) + "\n"


def _entries(data: object) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        return {}
    for key in _OUTER:
        if isinstance(inner := data.get(key), dict):
            return inner
    if isinstance(mcp := data.get("mcp"), dict):
        return _entries(mcp)
    is_one = isinstance(data.get("name"), str) and any(key in data for key in ("command", *_URLS))
    if is_one:
        return {data["name"]: data}
    return {name: one for name, one in data.items() if isinstance(one, dict)}


def _server(name: str, entry: object) -> ToolServer:
    if not isinstance(entry, dict):
        raise ToolServerError(f"{name}: what stands there is no object")
    url = next((entry[key] for key in _URLS if entry.get(key)), "")
    return ToolServer(
        name=name.strip(),
        command="" if url else _text(name, entry, "command"),
        args=_texts(name, entry.get("args", [])),
        env=_pairs(name, entry.get("env"), "env"),
        folder=_text(name, entry, "cwd"),
        url=str(url),
        headers=_pairs(name, entry.get("headers"), "headers"),
        is_on=entry.get("enabled") is True,
    )


def _entry(server: ToolServer) -> dict[str, Any]:
    entry: dict[str, Any] = {"enabled": server.is_on}
    if server.is_program:
        entry |= {"command": server.command, "args": list(server.args)}
    else:
        entry["url"] = server.url
    for key, pairs in (("env", server.env), ("headers", server.headers)):
        if pairs:
            entry[key] = dict(pairs)
    if server.folder:
        entry["cwd"] = server.folder
    return entry


def _text(name: str, entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key) or ""
    if not isinstance(value, str):
        raise ToolServerError(f"{name}: {key} is no text")
    return value


def _texts(name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(
        isinstance(one, str | int | float) for one in values
    ):
        raise ToolServerError(f"{name}: args is no list of texts")
    return tuple(str(one) for one in values)


def _pairs(name: str, values: object, key: str) -> tuple[tuple[str, str], ...]:
    if values is None:
        return ()
    if not isinstance(values, dict):
        raise ToolServerError(f"{name}: {key} is no object of texts")
    return tuple((str(one), str(value)) for one, value in values.items())
