"""The composition root: a window that cannot open its chats says so to somebody without a terminal."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox

from engine.file_lock import FileLock
from studio.app import run_window
from studio.models.errors import StoreBusy
from studio.paths import find_paths
from studio.services.settings_service import SettingsService


def test_a_second_layby_says_in_a_window_that_one_is_running(qapp: QApplication) -> None:
    paths = find_paths()
    settings = SettingsService(paths.settings_file, environment={}, flags={})
    first = FileLock(paths.history_file.with_name(paths.history_file.name + ".lock"))
    assert first.acquire()
    seen: list[str] = []

    def read_and_close() -> None:
        box = QApplication.activeModalWidget()
        if isinstance(box, QMessageBox):
            seen.extend((box.text(), box.informativeText()))
            box.accept()

    watch = QTimer(qapp)
    watch.timeout.connect(read_and_close)
    watch.start(1)
    try:
        with pytest.raises(StoreBusy, match="another Layby"):
            run_window(settings, paths)
    finally:
        watch.stop()
        watch.deleteLater()
        first.release()
    assert seen[0] == "Layby is already running"
    assert "another Layby" in seen[1]
    assert QApplication.desktopFileName() == "layby"
