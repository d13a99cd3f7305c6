"""Declared servers of tools: read from other programs' JSON, checked, kept, and set aside when broken."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from studio.models.errors import ToolServerError
from studio.models.tool_servers import ToolServer
from studio.services.tools.server_json import format_servers, parse_servers
from studio.services.tools.server_store import ToolServerStore

FILES = ToolServer(
    name="files", command="npx", args=("-y", "server-files", "/tmp"), env=(("KEY", "secret"),)
)
SEARCH = ToolServer(name="search", url="https://example.org/mcp", headers=(("X-Key", "1"),))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: {"mcpServers": inner},
        lambda inner: {"servers": inner, "inputs": []},
        lambda inner: {"mcp": {"servers": inner}},
        lambda inner: inner,
    ],
)
def test_servers_are_read_from_the_files_of_other_programs(wrap: object) -> None:
    inner = {
        "files": {
            "command": "npx",
            "args": ["-y", "server-files", "/tmp"],
            "env": {"KEY": "secret"},
        },
        "search": {"type": "http", "url": "https://example.org/mcp", "headers": {"X-Key": "1"}},
    }
    assert parse_servers(json.dumps(wrap(inner))) == (FILES, SEARCH)  # type: ignore[operator]


def test_what_is_written_is_read_again() -> None:
    servers = (FILES, SEARCH, ToolServer(name="here", command="x", folder="/srv", is_on=True))
    assert parse_servers(format_servers(servers)) == servers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "this is no JSON"),
        ("[]", "no server is in this"),
        ('{"mcpServers": {}}', "no server is in this"),
        ('{"mcpServers": {"a": 1}}', "a: what stands there is no object"),
        ('{"a": {"command": ["x"]}}', "a: command is no text"),
        ('{"a": {"command": "x", "args": "y"}}', "a: args is no list of texts"),
        ('{"a": {"command": "x", "env": []}}', "a: env is no object of texts"),
        ('{"a": {"env": {}}}', "a: give either the command of a program or the address"),
        ('{"a": {"url": "ftp://x"}}', "'ftp://x' is no address"),
        ('{"a": {"url": "http://["}}', "is no address"),
        ('{"": {"command": "x"}}', "needs a name"),
        ('{"a\\nb": {"command": "x"}}', "is not allowed; take 1 to 64"),
        ('{"a": {"command": "x\\u0000"}}', "zero byte"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(ToolServerError, match=words):
        parse_servers(text)


def test_servers_are_kept_for_their_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    store = ToolServerStore(path)
    told: list[int] = []
    store.changed.connect(lambda: told.append(len(store.servers)))
    store.add((FILES, SEARCH))
    store.switch("files", is_on=True)
    store.change("search", ToolServer(name="other", url="http://localhost:1/mcp"))
    assert [one.name for one in ToolServerStore(path).servers] == ["files", "search"]
    assert ToolServerStore(path).servers == store.servers
    assert store.servers[0].is_on
    store.remove("files")
    store.remove("search")
    assert ToolServerStore(path).servers == ()
    assert ToolServerStore(path).problem is None
    assert told == [2, 2, 2, 1, 0]
    if sys.platform != "win32":
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    store = ToolServerStore(tmp_path / "servers.json")
    store.add((FILES,))
    with pytest.raises(ToolServerError, match="there is a server called 'FILES' already"):
        store.add((SEARCH, ToolServer(name="FILES", command="x")))
    assert store.servers == (FILES,)


def test_a_broken_file_is_set_aside_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "servers.json"
    path.write_text("{", encoding="utf-8")
    store = ToolServerStore(path)
    assert store.servers == ()
    assert "kept as" in str(store.problem)
    assert (tmp_path / "servers.json.broken").exists()
    assert "was not readable" in caplog.text
