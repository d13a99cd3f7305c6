"""S12 in the real window: a model is got from a hub that cuts the line twice, over a restart, and with a wrong byte."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

import studio.app
from fakes.chat_rig import until
from fakes.file_server import FileServer, ServedFile, file_server
from fakes.real_window import RealWindow, open_real
from fakes.shots import shoot
from fakes.tiny_files import write_tiny_gguf
from studio.models.chat import MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.models.downloads import Download, DownloadState
from studio.services.hub_search import HubSearch
from studio.views.actions import CommandId
from studio.views.models.downloads_page import DownloadRow
from studio.views.models.models_window import ModelsPage, ModelsWindow
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
NAME = "One-F32.gguf"
PATH = "/org/One/resolve/main-sha/" + NAME
SHORT = ChatSettings(max_tokens=8)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """The hub, on this machine."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with file_server() as served:
        monkeypatch.setattr(studio.app, "HubSearch", lambda: HubSearch(served.address))
        yield served


def offer_on(server: FileServer, file: ServedFile) -> None:
    """Have the hub list the file, with its checksum."""
    size = len(file.data)
    listed = {
        "rfilename": NAME,
        "size": size,
        "lfs": {"sha256": file.sha256, "size": size, "pointerSize": 135},
    }
    server.files[PATH] = file
    server.answers["/api/models"] = [{"id": "org/One", "downloads": 12, "tags": ["gguf"]}]
    server.answers["/api/models/org/One"] = {
        "id": "org/One",
        "sha": "main-sha",
        "tags": ["license:mit"],
        "siblings": [listed],
    }


def button(widget: QWidget, text: str) -> QPushButton | None:
    found = (one for one in widget.findChildren(QPushButton) if one.text() == text)
    return next((one for one in found if one.isVisible()), None)


async def press(widget: QWidget, text: str) -> None:
    await until(lambda: button(widget, text) is not None)
    pressed = button(widget, text)
    assert pressed is not None
    pressed.click()


def models_window(real: RealWindow) -> ModelsWindow:
    real.window.commands[CommandId.MODELS].trigger()
    window = real.window.models_window.dialog
    assert isinstance(window, ModelsWindow)
    return window


def the_download(real: RealWindow) -> Download:
    (download,) = real.services.downloads.downloads
    return download


async def row_of(window: ModelsWindow, real: RealWindow, state: DownloadState) -> DownloadRow:
    """The download's row, once it is so and the page says it."""
    await until(lambda: the_download(real).state is state)
    window.show_page(ModelsPage.DOWNLOADS)
    window.downloads.refresh()
    (row,) = window.downloads.rows.values()
    return row


async def chat_goes_on(real: RealWindow) -> None:
    await real.new_chat(SHORT)
    reply = await real.send("Hello?")
    await until(lambda: not reply.status.is_alive)
    assert reply.status in (MessageStatus.DONE, MessageStatus.LENGTH)


async def get_from_the_hub(real: RealWindow, file: ServedFile) -> None:
    """The line is cut twice, and the program ended while the third part comes."""
    real.services.settings.change("sources.hub", True)
    window = models_window(real)
    window.show_page(ModelsPage.SOURCES)
    QTest.keyClicks(window.sources.hub.field, "one")
    await press(window.sources.hub, tr("Search"))
    await press(window.sources.hub, tr("Show files"))
    lost: list[str] = []

    def look() -> None:
        """A lost line is told; the pause that follows may be over before anybody looks."""
        if the_download(real).state is DownloadState.WAITING and not lost:
            window.show_page(ModelsPage.DOWNLOADS)
            window.downloads.refresh()
            lost.extend(map(words_of, window.downloads.rows.values()))
            shoot(window, "s12-connection-lost")

    disconnect = real.services.downloads.changed.connect(look)
    await press(window.sources.hub, tr("Get"))
    await until(file.is_held.is_set)
    disconnect()
    (told,) = lost
    assert tr("{amount} · connection lost, tried again by itself").partition("}")[2] in told
    await chat_goes_on(real)


def words_of(row: QWidget) -> str:
    return " ".join(label.text() for label in row.findChildren(QLabel) if not label.isHidden())


async def go_on_and_mend(real: RealWindow, file: ServedFile) -> None:
    """What had come is there; a wrong byte is named, and the file fetched again."""
    window = models_window(real)
    row = await row_of(window, real, DownloadState.PAUSED)
    assert the_download(real).done_bytes > 0
    shoot(window, "s12-after-restart")
    file.corrupt_at = len(file.data) - 1
    await press(row, tr("Go on"))
    row = await row_of(window, real, DownloadState.FAILED)
    assert NAME in words_of(row)
    shoot(window, "s12-damaged")
    file.corrupt_at = None
    await press(row, tr("Try again"))
    row = await row_of(window, real, DownloadState.DONE)
    assert tr("{amount} · in the library").partition("}")[2] in words_of(row)
    await until(lambda: any(one.path.name == NAME for one in real.services.models.entries))
    (entry,) = (one for one in real.services.models.entries if one.path.name == NAME)
    window.show_page(ModelsPage.LIBRARY)
    await until(lambda: tr("chat template") in words_of(window.library.rows[entry.name]))
    shoot(window, "s12-in-the-library")
    assert entry.path.read_bytes() == file.data
    assert await real.services.models.load(entry.name)
    await chat_goes_on(real)


@pytest.mark.slow
def test_s12_a_download_outlives_cuts_a_restart_and_a_wrong_byte(
    play: Play, tmp_path: Path, server: FileServer
) -> None:
    mine = write_tiny_gguf(tmp_path / "mine")
    file = ServedFile(write_tiny_gguf(tmp_path / "theirs", seed=7).read_bytes())
    third = len(file.data) // 3
    file.cuts, file.holds_after = [third, third // 2], third
    offer_on(server, file)

    async def story() -> None:
        async with open_real(tmp_path / "home", engine__ctx_size=2048) as real:
            assert await real.services.models.load(str(mine))
            await get_from_the_hub(real, file)
        file.holds_after = None
        file.go_on.set()
        async with open_real(tmp_path / "home", engine__ctx_size=2048) as real:
            await go_on_and_mend(real, file)

    play(story())
    first, second, third_time, after_restart, again = server.ranges_of(PATH[1:])
    assert (first, again) == (None, None)
    assert second == f"bytes={third}-"
    assert third_time == f"bytes={third + third // 2}-"
    assert after_restart is not None
    assert int(after_restart.removeprefix("bytes=").removesuffix("-")) >= third + third // 2
