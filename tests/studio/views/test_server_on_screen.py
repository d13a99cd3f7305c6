"""S17 in the real window with real sockets: a taken port, other machines let in, stopping with two under way.

And of S8 the program that is killed.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QMessageBox, QPushButton, QWidget

from fakes.at_once import shut
from fakes.chat_rig import until
from fakes.real_window import RealWindow, open_real
from fakes.shots import shoot
from fakes.tiny_files import write_tiny_gguf
from studio.models.request_log import RequestState
from studio.services.server_service import ServerState
from studio.views.actions import CommandId
from studio.views.server.server_window import ServerPages, ServerWindow
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
PROMPT = "A prompt that nobody keeps"
ASK = {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 8}


def server_window(real: RealWindow) -> ServerWindow:
    real.window.commands[CommandId.SERVER].trigger()
    window = real.window.server_window.dialog
    assert isinstance(window, ServerWindow)
    return window


def press(widget: QWidget, text: str) -> None:
    (pressed,) = (
        one for one in widget.findChildren(QPushButton) if one.text() == text and one.isVisible()
    )
    pressed.click()


async def start_at_a_taken_port(real: RealWindow, window: ServerWindow) -> None:
    """The page says that it is taken and offers another, where it stands."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        real.services.settings.change("server.port", taken)
        press(window.server, tr("Start"))
        await until(lambda: not window.server.way_on.isHidden())
        shoot(window, "s17-taken")
        window.server.way_on.click()
        await until(lambda: real.services.server.state is ServerState.ON)
        assert real.services.settings.settings.server.port != taken


async def let_others_in(real: RealWindow, window: ServerWindow) -> str:
    """Without a key it does not start; the page leads to where one is made. The key's secret."""
    server = real.services.server
    press(window.server, tr("Stop"))
    await until(lambda: server.state is ServerState.OFF)
    real.services.settings.change("server.host", "0.0.0.0")
    press(window.server, tr("Start"))
    await until(lambda: server.problem is not None and not window.server.way_on.isHidden())
    assert server.address is None
    told = [one.text() for one in window.server.findChildren(QLabel) if one.isVisible()]
    assert len([text for text in told if "0.0.0.0" in text]) == 1, (
        "that a key is needed is said once"
    )
    shoot(window, "s17-needs-a-key")
    window.server.way_on.click()
    assert window.pages.currentRow() == ServerPages.KEYS
    secrets: list[str] = []
    window.keys.created.connect(secrets.append)
    QTest.keyClicks(window.keys.form.name, "phone")
    press(window.keys.form, tr("Make a key"))
    await until(lambda: any(row.isVisible() for row in window.keys._rows))
    shoot(window, "s17-key")
    window.show_page(ServerPages.SERVER)
    press(window.server, tr("Start"))
    await until(lambda: server.state is ServerState.ON)
    (secret,) = secrets
    return secret


async def stop_with_two_under_way(
    real: RealWindow, window: ServerWindow, ask: Callable[[], Coroutine[Any, Any, httpx.Response]]
) -> None:
    """They are let finish, and nobody else is taken."""
    server = real.services.server
    await shut(real.gate)
    asked = [asyncio.create_task(ask()) for _ in range(2)]
    await until(lambda: len(server.requests_under_way()) == 2)
    press(window.server, tr("Stop"))
    (question,) = window.server.findChildren(QMessageBox)
    shoot(question, "s17-how-to-stop")
    press(question, tr("Finish first"))
    await until(lambda: server.state is ServerState.FINISHING)
    shoot(window, "s17-lets-them-finish")
    real.gate.open()
    assert [(await answer).status_code for answer in asked] == [200, 200]
    await until(lambda: server.state is ServerState.OFF)


def begin_stream(url: str) -> socket.socket:
    """A program's connection on which a long reply is being streamed."""
    body = json.dumps({**ASK, "max_tokens": 400, "stream": True, "ignore_eos": True}).encode()
    host, port = url.removeprefix("http://").split(":")
    program = socket.create_connection((host, int(port)))
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    program.sendall(head.encode() + body)
    return program


def kill(program: socket.socket) -> None:
    """What the system does with the connections of a program that is killed."""
    program.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    program.close()


def test_s8_a_program_killed_amid_its_stream_leaves_its_room_and_no_row(
    play: Play, tmp_path: Path
) -> None:
    model = write_tiny_gguf(tmp_path / "model")

    async def story() -> None:
        async with open_real(tmp_path / "home", engine__ctx_size=512, server__port=0) as real:
            assert await real.services.models.load(str(model))
            server, panel = real.services.server, real.window.pool_panel
            await server.start()
            real.window.commands[CommandId.POOL].trigger()
            real.gate.shut_at(1, 20)
            program = await asyncio.to_thread(begin_stream, str(server.address))
            await until(lambda: real.gate.is_shut)
            await real.settle()
            assert len(panel.rows) == 1
            await real.shoot("s8-a-program-streams")
            kill(program)
            await until(lambda: not server.requests_under_way())
            real.gate.open()
            await until(lambda: not real.services.runs.snapshot().runs)
            assert real.services.runs.snapshot().holdings == ()
            await real.settle()
            assert not panel.rows
            (row,) = server.log.rows
            assert row.state is RequestState.LEFT
            assert row.completion_tokens < 400

    play(story())


def test_s17_the_server_from_its_first_start_to_its_last_request(
    play: Play, tmp_path: Path
) -> None:
    model = write_tiny_gguf(tmp_path / "model")

    async def story() -> None:
        async with (
            open_real(tmp_path / "home", engine__ctx_size=512) as real,
            httpx.AsyncClient(trust_env=False, timeout=60) as client,
        ):
            assert await real.services.models.load(str(model))
            window, server = server_window(real), real.services.server
            await start_at_a_taken_port(real, window)
            secret = await let_others_in(real, window)
            url = f"http://127.0.0.1:{real.services.settings.settings.server.port}"
            headers = {"authorization": f"Bearer {secret}"}

            async def ask() -> httpx.Response:
                return await client.post(f"{url}/v1/chat/completions", json=ASK, headers=headers)

            assert (await client.post(f"{url}/v1/chat/completions", json=ASK)).status_code == 401
            await stop_with_two_under_way(real, window, ask)
            window.show_page(ServerPages.REQUESTS)
            shoot(window, "s17-requests")
            states = [row.state for row in server.log.rows]
            assert states.count(RequestState.DONE) == 2
            assert not any(PROMPT in row.prompt for row in server.log.rows)

    play(story())
