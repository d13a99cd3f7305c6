"""A second start hands over to the first, and to nobody else's."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QObject
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from fakes.fake_window import open_stage, until
from studio.models.errand import MOST_BYTES, Errand
from studio.views.single_instance import InstanceServer, address_for, hand_over

ROOT = Path(__file__).resolve().parents[3]
Play = Callable[[Coroutine[Any, Any, None]], None]


class First:
    """The Layby that is open."""

    def __init__(self, folder: Path) -> None:
        self.errands: list[Errand] = []
        self.address = address_for(folder)
        self.parent = QObject()
        self.server = InstanceServer(self.address, self.errands.append, self.parent)


@pytest.fixture
def first(qapp: QApplication, tmp_path: Path) -> Iterator[First]:
    made = First(tmp_path)
    yield made
    made.server.close()


SECOND = """
import sys
from PySide6.QtCore import QCoreApplication
from studio.models.errand import Errand
from studio.views.single_instance import hand_over

application = QCoreApplication([])
sys.exit(0 if hand_over(sys.argv[1], Errand.from_bytes(sys.stdin.buffer.read())) else 1)
"""


def second_start(address: str, errand: Errand, qtbot: QtBot) -> bool:
    """Whether another process could hand over, while this one runs its events."""
    with subprocess.Popen(
        [sys.executable, "-c", SECOND, address],
        stdin=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(errand.to_bytes())
        process.stdin.close()
        qtbot.waitUntil(lambda: process.poll() is not None)
        return process.returncode == 0


def test_an_errand_arrives(first: First, qtbot: QtBot) -> None:
    errand = Errand(text="Hello\nthere", files=(Path("/tmp/x.gguf"),))
    assert second_start(first.address, errand, qtbot)
    assert first.errands == [errand]
    long = Errand(text="x" * 300_000)
    assert second_start(first.address, long, qtbot)
    assert first.errands[1] == long


def test_without_a_first_there_is_nobody_to_take_it(qapp: QApplication, tmp_path: Path) -> None:
    assert not hand_over(address_for(tmp_path), Errand())


def test_another_home_is_another_layby(first: First, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    assert address_for(other) != first.address
    assert not hand_over(address_for(other), Errand(text="not for you"))
    assert first.errands == []


@pytest.mark.skipif(sys.platform == "win32", reason="pipes leave nothing behind")
def test_a_socket_that_a_dead_program_left_is_replaced(
    qapp: QApplication, tmp_path: Path, qtbot: QtBot
) -> None:
    Path(address_for(tmp_path)).write_bytes(b"")
    assert not hand_over(address_for(tmp_path), Errand())
    first = First(tmp_path)
    assert first.server.is_listening
    assert second_start(first.address, Errand(), qtbot)
    first.server.close()
    assert not Path(first.address).exists()


@pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")
def test_only_the_user_may_call(first: First) -> None:
    mode = stat.S_IMODE(Path(first.address).stat().st_mode)
    assert mode & 0o077 == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pipes have short names")
def test_a_long_path_gets_a_short_address(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 200)
    assert len(address_for(deep)) < 104
    assert address_for(deep) != address_for(deep / "y")


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\r\n\r\n", b"x" * (MOST_BYTES + 1)])
def test_noise_is_hung_up_on(first: First, qtbot: QtBot, words: bytes) -> None:
    socket = QLocalSocket()
    socket.connectToServer(first.address)
    qtbot.waitUntil(lambda: socket.state() is QLocalSocket.LocalSocketState.ConnectedState)
    socket.write(words)
    qtbot.waitUntil(lambda: socket.state() is QLocalSocket.LocalSocketState.UnconnectedState)
    assert first.errands == []


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_the_window_puts_a_text_into_a_new_chat_and_does_not_send_it(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.showMinimized()
            stage.window.app.receive(Errand(text="Why is the sky blue?"))
            await until(lambda: stage.window.panes.active.composer.text() == "Why is the sky blue?")
            assert not stage.window.isMinimized()
            assert len(stage.chats.chats) == 2
            pane = stage.window.panes.active
            await stage.window.panes.show_chat(await stage.chats.new_chat())
            stage.window.app.receive(Errand(text="And the sea?"))  # beside an empty chat in view
            await until(lambda: pane.composer.text() == "And the sea?")
            QTest.keyClicks(pane.composer.focusProxy(), " Why?")
            assert pane.chat is not None
            assert (pane.chat.draft, len(stage.chats.chats)) == ("And the sea? Why?", 3)
            assert not stage.engine.requests
            stage.window.app.receive(Errand(files=(Path("/models/x.gguf"),)))
            await until(lambda: ("add", "/models/x.gguf") in stage.models.asked)

    play(story())


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_a_text_comes_into_the_empty_chat_that_is_in_view(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=()) as stage:
            await until(lambda: stage.window.panes.active.chat is not None)
            stage.window.app.receive(Errand(text="Why is the sky blue?"))
            await until(lambda: stage.window.panes.active.composer.text() == "Why is the sky blue?")
            assert len(stage.chats.chats) == 1
            QTest.keyClicks(stage.window.focusWidget(), " Or red?")
            assert stage.chats.chats[0].draft == "Why is the sky blue? Or red?"

    play(story())


def test_an_errand_that_comes_twice_is_done_once(first: First, qtbot: QtBot) -> None:
    errand = Errand(text="Hello")
    assert second_start(first.address, errand, qtbot)
    assert second_start(first.address, errand, qtbot), "it had no answer in time"
    assert second_start(first.address, Errand(text="Hello"), qtbot)
    assert first.errands == [errand, Errand(text="Hello")]
