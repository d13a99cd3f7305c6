"""The window while a large file comes at full speed: how late ticks are that typing and streaming need.

Run: QT_QPA_PLATFORM=offscreen PYTHONPATH=.:tests python tests/bench/bench_download.py [--gigabytes 1]. Not collected by
pytest. The file comes from a process of its own on this machine; the downloads' page is open, and somebody types.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import qasync
from PySide6.QtCore import QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from fakes.file_server import ServedFile, file_server
from studio.app import open_services
from studio.models.downloads import DownloadState, Offer, RemoteFile
from studio.paths import Paths
from studio.services.settings_service import SettingsService
from studio.views.main_window import MainWindow
from studio.views.models.models_window import ModelsPage
from studio.views.ports import WindowServices

TICK_MS, TYPE_EVERY_S, AT_REST_S = 5, 0.05, 5.0
GOAL_P99_MS, GOAL_WORST_MS = 50.0, 100.0
_SERVE = "--serve"


class Lateness:
    """How late timers of TICK_MS come: one of Qt's, and one of asyncio's on the same loop."""

    def __init__(self) -> None:
        self._late: dict[str, list[float]] = {"Qt": [], "asyncio": []}
        self._last = dict.fromkeys(self._late, 0.0)
        self._timer = QTimer()
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(lambda: self._tick("Qt"))
        self._next: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._late = {name: [] for name in self._late}
        self._last = dict.fromkeys(self._late, time.perf_counter())
        self._timer.start()
        self._again()

    def end(self, what: str) -> bool:
        """Print the figures; whether they are within the goals."""
        self._timer.stop()
        if self._next is not None:
            self._next.cancel()
        is_good = True
        for name, values in self._late.items():
            late = sorted(values)
            p50, p99 = late[len(late) // 2], late[int(len(late) * 0.99)]
            is_good &= p99 <= GOAL_P99_MS and late[-1] <= GOAL_WORST_MS
            print(
                f"  {what:<9}{name:<8}ticks late p50 {p50:4.1f}  p99 {p99:5.1f}  "
                f"worst {late[-1]:5.1f} ms ({len(late)})"
            )
        return is_good

    def _again(self) -> None:
        self._tick("asyncio")
        self._next = asyncio.get_running_loop().call_later(TICK_MS / 1e3, self._again)

    def _tick(self, name: str) -> None:
        now = time.perf_counter()
        self._late[name].append(max(0.0, (now - self._last[name]) * 1e3 - TICK_MS))
        self._last[name] = now


@contextmanager
def serving(num_bytes: int) -> Iterator[RemoteFile]:
    """The file, in a process of its own."""
    command = [sys.executable, __file__, _SERVE, str(num_bytes)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield RemoteFile(**json.loads(process.stdout.readline()))
        process.communicate()


def serve(num_bytes: int) -> None:
    with file_server() as served:
        served.files["/large.gguf"] = ServedFile(b"GGUF" + os.urandom(num_bytes - 4))
        file = served.remote("large.gguf")
        facts = {name: getattr(file, name) for name in ("url", "file_name", "size_bytes", "sha256")}
        print(json.dumps(facts), flush=True)
        sys.stdin.read()


async def type_on(window: MainWindow) -> None:
    field = window.panes.active.composer.focusProxy()
    while True:
        QTest.keyClicks(field, "w ")
        await asyncio.sleep(TYPE_EVERY_S)


async def bring(services: WindowServices, file: RemoteFile) -> float:
    """Seconds until the file is checked and in the library."""
    done = asyncio.Event()
    services.downloads.arrived.connect(lambda _name: done.set())
    began_s = time.perf_counter()
    download = await services.downloads.add(Offer(name="large", source="here", files=(file,)))
    while not done.is_set():
        now = next(each for each in services.downloads.downloads if each.offer is download.offer)
        if now.state is DownloadState.FAILED:
            raise SystemExit(f"the download failed: {now.error}")
        await asyncio.sleep(0.1)
    return time.perf_counter() - began_s


async def measure(home: Path, file: RemoteFile) -> bool:
    settings = SettingsService(home / "settings.json", environment={}, flags={})
    paths = Paths(data=home / "data", cache=home / "cache", config=home, logs=home / "logs")
    async with open_services(settings, paths) as services:
        window = MainWindow(services)
        window.show()
        while window.panes.active.chat is None:  # noqa: ASYNC110 - a condition is no event
            await asyncio.sleep(0.01)
        window.models_window.open(ModelsPage.DOWNLOADS)
        lateness, typing = Lateness(), asyncio.create_task(type_on(window))
        lateness.begin()
        await asyncio.sleep(AT_REST_S)
        lateness.end("at rest")
        lateness.begin()
        took_s = await bring(services, file)
        is_good = lateness.end("download")
        assert file.size_bytes is not None
        print(f"  {file.size_bytes / 1e9:.2f} GB in {took_s:.1f} s, its check included")
        typing.cancel()
        window.quit()
        window.deleteLater()
    return is_good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument(_SERVE, dest="num_bytes", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.num_bytes is not None:
        serve(given.num_bytes)
        return 0
    application = QApplication(["layby"])
    with (
        serving(int(given.gigabytes * 1e9)) as file,
        tempfile.TemporaryDirectory() as home,
        asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner,
    ):
        is_good = runner.run(measure(Path(home), file))
    print(
        f"goal: p99 {GOAL_P99_MS:.0f} ms, worst {GOAL_WORST_MS:.0f} ms: {'met' if is_good else 'missed'}"
    )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
