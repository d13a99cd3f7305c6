"""The first launch: one screen, three ways on, a draft at once, and not one socket unless it was asked for."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QPlainTextEdit, QPushButton

from engine.api import EngineState, ModelInfo
from fakes.fake_engine import FakeEngine
from fakes.fake_window import open_stage, until
from fakes.real_window import open_real
from fakes.tiny_files import write_tiny_gguf
from studio.app import open_services
from studio.models.model_fit import Machine
from studio.models.model_library import Finder, FoundModel, ModelFacts
from studio.paths import find_paths
from studio.services.server_service import ServerState
from studio.services.settings_service import SettingsService
from studio.views import start_view
from studio.views.actions import CommandId
from studio.views.main_window import MainWindow
from studio.views.start_view import StartView
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]

_heard: list[tuple[str, object]] = []
_is_listening: list[bool] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if _is_listening and event in ("socket.connect", "socket.bind", "socket.getaddrinfo"):
        _heard.append((event, arguments[-1] if event != "socket.getaddrinfo" else arguments[0]))


sys.addaudithook(_hear)  # cannot be taken away again, only be deaf


@contextmanager
def network_watched() -> Iterator[list[tuple[str, object]]]:
    """What this process asks of the network meanwhile; a Unix socket's address is a text, not a pair."""
    _heard.clear()
    _is_listening.append(True)
    try:
        yield _heard
    finally:
        _is_listening.pop()


def offers(view: StartView) -> list[str]:
    return [button.text() for button in view.findChildren(QPushButton) if not button.isHidden()]


def press(view: StartView, text: str) -> None:
    next(each for each in view.findChildren(QPushButton) if each.text() == text).click()


def test_the_watch_on_the_network_hears(tmp_path: Path) -> None:
    with network_watched() as heard, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
    assert heard == [("socket.bind", ("127.0.0.1", 0))]


def test_no_socket_is_opened_before_somebody_asks(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    mine = write_tiny_gguf(tmp_path / "mine")

    async def story() -> None:
        paths = find_paths()
        settings = SettingsService(paths.settings_file, environment={}, flags={})
        engine = FakeEngine(ready=False)
        with network_watched() as heard:
            async with open_services(settings, paths, engine=engine) as services:
                window = MainWindow(services)
                window.show()
                view = window.panes.active.start_view
                await until(lambda: "Look around first" in offers(view))
                composer = window.panes.active.composer
                QTest.keyClicks(composer.findChild(QPlainTextEdit), "Hi")
                assert composer.findChild(QPlainTextEdit).toPlainText() == "Hi"
                press(view, "Look around first")
                window.commands[CommandId.MODELS].trigger()
                window.commands[CommandId.SERVER].trigger()
                for opener in (window.models_window, window.server_window):
                    assert opener.dialog is not None
                    for page in range(opener.dialog.pages.count()):
                        opener.dialog.show_page(page)
                        await asyncio.sleep(0)
                assert await services.models.add_folder(mine.parent) == 1
                window.close()
                await window.wait_closed()
                window.deleteLater()
        asked = [each for each in heard if not isinstance(each[1], str | bytes)]
        assert asked == [], "nobody had asked for anything"

    play(story())


def test_what_is_on_this_computer_is_offered_first(
    play: Play, tmp_path: Path, info: ModelInfo
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            view = stage.window.panes.active.start_view
            await until(lambda: ("look_around", "") in stage.models.asked)
            assert offers(view) == [
                "Get the starter model (98 MB)",
                "Use a file I have…",
                "Use a folder I have…",
                "Look around first",
            ]
            sound = FoundModel(
                name="llama3-8b", path=tmp_path / "a", size_bytes=10**9, finder=Finder.OLLAMA
            )
            broken = FoundModel(
                name="broken", path=tmp_path / "b", size_bytes=1, finder=Finder.LM_STUDIO
            )
            stage.models.found = (broken, sound)
            stage.models.facts = {
                sound.path: ModelFacts(info=info),
                broken.path: ModelFacts(info=None, problem="no"),
            }
            stage.models.library_changed.emit()
            await until(lambda: offers(view)[0] == "Use llama3-8b")
            assert not any("broken" in text for text in offers(view))
            press(view, "Use llama3-8b")
            await until(lambda: ("add_found", "llama3-8b") in stage.models.asked)

    play(story())


@pytest.mark.parametrize(
    ("free_mb", "told"),
    [
        (
            4_000,
            "4 chats of 8,192 tokens at once, one more would wait its turn",
        ),
        (400, "3 chats of 2,000 tokens fit, a fourth would park"),
        (50, "Does not fit: "),
    ],
)
def test_what_the_suggested_model_would_do_here_is_told_in_chats(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, free_mb: int, told: str
) -> None:
    machine = Machine(
        total_bytes=8 << 30, free_bytes=free_mb * 1_000_000, cores=4, has_native_kernels=True
    )
    monkeypatch.setattr(start_view, "look_at_machine", lambda _snapshot: machine)

    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            view = stage.window.panes.active.start_view
            (starter,) = (
                button
                for button in view.findChildren(QPushButton)
                if button.text().startswith("Get the starter model")
            )
            assert told in starter.accessibleDescription()

    play(story())


def test_looking_around_first_leaves_the_way_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            view = stage.window.panes.active.start_view
            press(view, "Look around first")
            await until(lambda: offers(view) == ["Choose a model"])
            press(view, "Choose a model")
            await until(lambda: offers(view)[-1:] == ["Look around first"])

    play(story())


@pytest.mark.slow
@pytest.mark.xdist_group("served")
def test_s1_from_a_fresh_profile_to_the_first_reply_with_a_model_of_ones_own(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, starter_model: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))

    async def story() -> None:
        with network_watched() as heard:
            async with open_real(tmp_path / "home", engine__ctx_size=4096) as real:
                await until(lambda: tr("Look around first") in offers(real.pane.start_view))
                await real.shoot("s1-first-launch")
                press(real.pane.start_view, tr("Use a file I have…"))
                dialog = real.window.findChild(QFileDialog)
                dialog.fileSelected.emit(str(starter_model))
                dialog.reject()
                real.type("Say hello")
                await real.shoot("s1-draft")
                models = real.services.models
                await until(lambda: models.state is EngineState.READY)
                assert real.pane.composer.text() == "Say hello"
                real.type(" to the world.")
                real.press_return()
                chat = real.pane.chat
                await until(lambda: chat.messages and not chat.messages[-1].status.is_alive)
                assert chat.messages[0].text == "Say hello to the world."
                assert chat.messages[1].text
                await real.shoot("s1-first-reply")
                assert real.services.server.state is ServerState.OFF
                assert not real.services.notices.notices.notices
                settings = real.services.settings.settings
                assert settings.engine.model == starter_model.stem
        assert [each for each in heard if not isinstance(each[1], str | bytes)] == []

    play(story())


@pytest.fixture
def info() -> ModelInfo:
    return FakeEngine().snapshot().model  # type: ignore[return-value]
