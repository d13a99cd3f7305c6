"""Real servers of tools over stdio and HTTP: started when needed, called, and gone in the end with their processes."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psutil
import pytest
import uvicorn

from fakes.chat_rig import until
from fakes.on_a_loop import on_a_loop
from fakes.tools import stdio_server
from studio.models.errors import ToolServerError
from studio.models.tool_servers import LinkState, ToolServer
from studio.services.tools.answers import MOST_CHARS, ToolAnswer
from studio.services.tools.tool_service import ToolService

SCRIPT = Path(stdio_server.__file__)
TIMEOUT_S = 60.0


def program(*args: str, name: str = "weather", is_on: bool = True, **fields: object) -> ToolServer:
    return ToolServer(
        name=name,
        command=sys.executable,
        args=(str(SCRIPT), *args),
        is_on=is_on,
        **fields,  # type: ignore[arg-type]
    )


@asynccontextmanager
async def service(
    tmp_path: Path, *servers: ToolServer, **options: float
) -> AsyncIterator[ToolService]:
    tools = ToolService(tmp_path / "servers.json", **options)
    tools.store.add(servers)
    try:
        yield tools
    finally:
        await tools.close()


async def call(
    tools: ToolService, tool: str, arguments: str = "{}", **options: float
) -> ToolAnswer:
    return await tools.call("weather", tool, arguments, **{"timeout_s": TIMEOUT_S, **options})


def is_alive(path: Path) -> bool:
    pid = int(path.read_text())
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@contextmanager
def http_server() -> Iterator[str]:
    """The same server over streamable HTTP on a free port of this machine."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = stdio_server.make_server().streamable_http_app()
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on"))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@on_a_loop
async def test_nothing_is_started_before_a_chat_needs_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with service(tmp_path, program("--pid", str(pid))) as tools:
        assert tools.status("weather").state is LinkState.OFF
        assert not tools._thread.is_running
        assert not pid.exists()


@on_a_loop
async def test_to_hear_of_the_tools_starts_each_server_once_and_none_that_has_failed(
    tmp_path: Path,
) -> None:
    broken = ToolServer(name="broken", command="no-such-program", is_on=True)
    off = program(name="off", is_on=False)
    async with service(tmp_path, program(), broken, off) as tools:
        starts: list[str] = []
        tools.changed.connect(
            lambda name: (
                starts.append(name) if tools.status(name).state is LinkState.STARTING else None
            )
        )
        names = ("weather", "broken", "off", "not there")
        await asyncio.gather(tools.hear_of(names), tools.hear_of(names))
        await tools.hear_of(names)
        assert sorted(starts) == ["broken", "weather"]
        assert list(tools.known_tools(names)) == ["weather"]


@on_a_loop
async def test_one_that_is_switched_off_is_never_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with service(tmp_path, program("--pid", str(pid), is_on=False)) as tools:
        assert await tools.tools_of(["weather", "unknown"]) == {}
        with pytest.raises(ToolServerError, match="switched off"):
            await call(tools, "weather")
        assert not pid.exists()


@on_a_loop
async def test_a_program_is_started_called_and_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    states: list[LinkState] = []
    env = (("LAYBY_TEST_MOOD", "with a breeze"),)
    async with service(tmp_path, program("--pid", str(pid), env=env)) as tools:
        tools.changed.connect(lambda name: states.append(tools.status(name).state))
        found = await tools.tools_of(["weather"])
        assert [tool.name for tool in found["weather"]][:2] == ["weather", "picture"]
        assert '"city"' in found["weather"][0].parameters
        assert is_alive(pid)
        answer = await call(tools, "weather", '{"city": "Lisbon", "days": 3}')
        assert answer == ToolAnswer(text="3 sunny days in Lisbon, with a breeze")
    assert not is_alive(pid)
    assert states == [LinkState.STARTING, LinkState.READY, LinkState.OFF]


@on_a_loop
async def test_the_processes_of_a_program_end_with_it(tmp_path: Path) -> None:
    child = tmp_path / "child"
    async with service(tmp_path, program("--child", str(child))) as tools:
        await tools.tools_of(["weather"])
        assert is_alive(child)
        tools.store.switch("weather", is_on=False)
        await until(lambda: tools.status("weather").state is LinkState.OFF)
        await until(lambda: not is_alive(child))


@on_a_loop
async def test_an_answer_that_is_no_text_is_said_in_words(tmp_path: Path) -> None:
    async with service(tmp_path, program()) as tools:
        assert (await call(tools, "picture")).text == "[image: image/png, 5 bytes]"
        broken = await call(tools, "broken")
        assert broken.is_error
        assert "broken" in broken.text
        long = await call(tools, "long", f'{{"chars": {MOST_CHARS + 5}}}')
        assert long.text.endswith("\n[cut off here: 5 characters more]")


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("weather", "{", "the arguments are no JSON"),
        ("weather", "[1]", "the arguments are no JSON object"),
        ("wether", "{}", "weather has no tool called 'wether'"),
    ],
)
@on_a_loop
async def test_what_cannot_be_called_is_said(
    tmp_path: Path, tool: str, arguments: str, words: str
) -> None:
    async with service(tmp_path, program()) as tools:
        with pytest.raises(ToolServerError, match=words):
            await call(tools, tool, arguments)


@on_a_loop
async def test_a_tool_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    async with service(tmp_path, program()) as tools:
        await tools.tools_of(["weather"])
        with pytest.raises(ToolServerError, match=r"did not answer slow within 0\.2 s"):
            await call(tools, "slow", f'{{"path": "{tmp_path / "a"}"}}', timeout_s=0.2)


@on_a_loop
async def test_a_call_can_be_cancelled(tmp_path: Path) -> None:
    async with service(tmp_path, program()) as tools:
        path = tmp_path / "begun"
        task = asyncio.create_task(call(tools, "slow", f'{{"path": "{path}"}}'))
        await until(path.exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@on_a_loop
async def test_one_that_leaves_is_started_again_when_it_is_needed(tmp_path: Path) -> None:
    async with service(tmp_path, program()) as tools:
        with pytest.raises(ToolServerError):
            await call(tools, "leave")
        answer = await call(tools, "weather", '{"city": "Lisbon"}')
        assert answer.text == "1 sunny days in Lisbon, as usual"


@on_a_loop
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    server = ToolServer(name="weather", command="no-such-program-anywhere", is_on=True)
    async with service(tmp_path, server) as tools:
        assert await tools.tools_of(["weather"]) == {}
        status = tools.status("weather")
        assert status.state is LinkState.FAILED
        assert "the program 'no-such-program-anywhere' was not found" in status.problem


@on_a_loop
async def test_one_that_never_answers_is_given_up_with_what_it_said(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    server = program("--pid", str(pid), "--never")
    async with service(tmp_path, server, start_timeout_s=5.0) as tools:
        assert await tools.tools_of(["weather"]) == {}
        problem = tools.status("weather").problem
        assert "no answer within 5 s" in problem
        assert not is_alive(pid)


@on_a_loop
async def test_a_server_over_http_is_asked_and_let_go(tmp_path: Path) -> None:
    with http_server() as url:
        async with service(tmp_path, ToolServer(name="weather", url=url, is_on=True)) as tools:
            answer = await call(tools, "weather", '{"city": "Porto"}')
            assert answer.text == "1 sunny days in Porto, as usual"


@on_a_loop
async def test_an_address_at_which_nobody_listens_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
    async with service(tmp_path, ToolServer(name="weather", url=url, is_on=True)) as tools:
        assert await tools.tools_of(["weather"]) == {}
        assert "weather: " in tools.status("weather").problem


@on_a_loop
async def test_a_test_shows_the_tools_and_leaves_nothing(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    async with service(tmp_path) as tools:
        found = await tools.test(program("--pid", str(pid), is_on=False))
        assert "weather" in [tool.name for tool in found]
        assert not is_alive(pid)


def test_the_package_is_not_imported_with_the_service() -> None:
    code = "import sys, studio.services.tools.tool_service; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
