"""The composition root: what cannot be had is said, in a window to somebody without a terminal, else in the log."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication, QMessageBox

from engine.errors import ModelNotFound
from engine.file_lock import FileLock
from studio.app import run_server, run_window
from studio.models.errand import Errand
from studio.models.errors import StoreBusy, StoreError
from studio.models.setting_field import SettingValue
from studio.models.settings import Theme
from studio.paths import find_paths
from studio.services.settings_service import SettingsService
from studio.views import first_start
from studio.views.main_window import MainWindow
from studio.views.single_instance import InstanceServer, address_for
from studio.views.theme import load_colors

ROOT = Path(__file__).resolve().parents[2]
WAIT_CLOSED = MainWindow.wait_closed


class Reader:
    """Reads what stands on screen before there is a window of ours, and presses a button once."""

    def __init__(self, press: Callable[[QMessageBox], None]) -> None:
        self.words: list[str] = []
        self.looks: list[str] = []
        self._press = press
        self._watch = QTimer()
        self._watch.timeout.connect(self._look)

    def __enter__(self) -> Reader:
        self._watch.start(1)
        return self

    def __exit__(self, *_error: object) -> None:
        self._watch.stop()

    def _look(self) -> None:
        box = QApplication.activeModalWidget()
        if isinstance(box, QMessageBox) and box.isVisible() and not self.words:
            self.words = [box.text(), box.informativeText(), *(b.text() for b in box.buttons())]
            self.looks = [box.palette().window().color().name(), str(box.font().pixelSize())]
            self._press(box)


def press(words: str) -> Callable[[QMessageBox], None]:
    return lambda box: next(one for one in box.buttons() if one.text() == words).click()


def start(errand: Errand | None = None, **flags: SettingValue) -> None:
    """As `layby` does."""
    paths = find_paths()
    named = {name.replace("__", "."): value for name, value in flags.items()}
    settings = SettingsService(paths.settings_file, environment={}, flags=named)
    assert run_window(settings, paths, errand) is None


@pytest.fixture
def first(qapp: QApplication) -> Iterator[FileLock]:
    """What another Layby holds that has the chats open."""
    path = find_paths().history_file
    lock = FileLock(path.with_name(path.name + ".lock"))
    assert lock.acquire()
    yield lock
    lock.release()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_layby_that_finds_the_chats_open_says_so_in_its_own_look_and_may_be_closed(
    first: FileLock, monkeypatch: pytest.MonkeyPatch, theme: str
) -> None:
    monkeypatch.setattr(first_start, "PATIENCE_MS", 0)
    look = {"appearance__theme": theme, "appearance__text_size": 20}
    with Reader(press("Close")) as reader, pytest.raises(StoreBusy, match="another Layby"):
        start(**look)
    headline, detail, *buttons = reader.words
    assert headline == "Layby is already running"
    assert detail.startswith("The chat history ")
    assert detail.endswith("close it first; Layby tries again by itself.")
    assert buttons == ["Close"]
    assert reader.looks == [load_colors(Theme(theme)).window.name(), "19"]
    assert QApplication.desktopFileName() == "layby"


@pytest.mark.parametrize("patience_ms", [0, 600_000], ids=["said", "at once"])
def test_the_errand_of_a_start_waits_for_the_layby_that_is_just_starting(
    first: FileLock, monkeypatch: pytest.MonkeyPatch, patience_ms: int
) -> None:
    monkeypatch.setattr(first_start, "PATIENCE_MS", patience_ms)
    heard: list[Errand] = []
    parent, errand = QObject(), Errand(text="Why is the sky blue?")
    address = address_for(find_paths().data)

    def begin_to_listen(_box: QMessageBox | None) -> None:
        InstanceServer(address, heard.append, parent)

    if patience_ms:  # another process, which nothing here keeps waiting
        with listening_process(address) as process:
            start(errand)
            assert process.stdout is not None
            heard.append(Errand.from_bytes(process.stdout.readline()) or Errand())
    else:
        with Reader(begin_to_listen):
            start(errand)
    assert heard == [errand]
    parent.deleteLater()


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_a_start_goes_on_by_itself_when_the_layby_that_had_the_chats_is_gone(
    first: FileLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_start, "PATIENCE_MS", 0)
    monkeypatch.setattr(MainWindow, "wait_closed", close_at_once)
    with Reader(lambda _box: first.release()) as reader:
        start()
    assert reader.words[0] == "Layby is already running"
    assert find_paths().history_file.exists()


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_a_start_that_failed_is_tried_again_when_the_user_wants_it(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way = find_paths().history_file
    in_the_way.mkdir(parents=True)
    monkeypatch.setattr(MainWindow, "wait_closed", close_at_once)

    def make_way(box: QMessageBox) -> None:
        in_the_way.rmdir()
        press("Try again")(box)

    with Reader(press("Close")) as reader, pytest.raises(StoreError):
        start()
    assert reader.words[0] == "The chats cannot be opened"
    assert reader.words[1].endswith("read and written.")
    assert reader.words[2:] == ["Try again", "Close"]
    with Reader(make_way):
        start()
    assert in_the_way.is_file()


async def close_at_once(window: MainWindow) -> None:
    window.quit()
    await WAIT_CLOSED(window)


LISTEN = """
import sys
from PySide6.QtCore import QCoreApplication, QObject
from studio.views.single_instance import InstanceServer

def tell(errand):
    sys.stdout.write(errand.to_bytes().decode())
    sys.stdout.flush()

application = QCoreApplication([])
server = InstanceServer(sys.argv[1], tell, application)
application.exec()
"""


@contextmanager
def listening_process(address: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", LISTEN, address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("source", "levels"),
    [
        ("flag", [logging.WARNING]),
        ("variable", [logging.WARNING]),
        ("file", [logging.INFO]),
        ("", []),
    ],
)
def test_a_server_says_that_it_keeps_nothing_in_the_folder_for_parked_chats(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, source: str, levels: list[int]
) -> None:
    paths = find_paths()
    folder, model = tmp_path / "parked", str(tmp_path / "none.gguf")
    flags: dict[str, SettingValue] = {"engine.model": model}
    if source == "flag":
        flags["park.folder"] = str(folder)
    variables = {"LAYBY_PREEMPT_DISK": str(folder)} if source == "variable" else {}
    settings = SettingsService(tmp_path / "settings", environment=variables, flags=flags)
    if source == "file":
        settings.change("park.folder", str(folder))
    with caplog.at_level(logging.INFO, "studio.app"), pytest.raises(ModelNotFound):
        run_server(settings, paths)
    said = [record for record in caplog.records if "nothing is kept" in record.getMessage()]
    assert [record.levelno for record in said] == levels
    assert all(str(folder) in record.getMessage() for record in said)
    assert not folder.exists()
