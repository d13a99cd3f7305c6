"""The composition root: what cannot be had is said, in a window to somebody without a terminal, else in the log."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox

from engine.errors import ModelNotFound
from engine.file_lock import FileLock
from studio.app import run_server, run_window
from studio.models.errors import StoreBusy
from studio.models.setting_field import SettingValue
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
