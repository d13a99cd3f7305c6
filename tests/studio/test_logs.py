"""Logs go to a rotating file, or to standard error."""

from __future__ import annotations

import errno
import io
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.logs import log_to_file, log_to_stderr
from studio.models.settings import LogLevel


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    logging.captureWarnings(capture=False)
    for handler in [handler for handler in root.handlers if handler not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


def test_records_of_the_level_and_above_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "layby.log"
    log_to_file(path, LogLevel.INFO)
    logging.getLogger("studio.test").debug("too quiet")
    logging.getLogger("studio.test").info("ünïcode told")
    text = path.read_text("utf-8")
    assert "ünïcode told" in text
    assert "too quiet" not in text


def test_without_a_writable_folder_standard_error_takes_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    log_to_file(tmp_path / "file" / "layby.log", LogLevel.INFO)
    logging.getLogger("studio.test").info("still told")
    assert "still told" in capsys.readouterr().err
    assert "no log file" in caplog.text


def test_the_server_logs_to_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(LogLevel.DEBUG)
    logging.getLogger("studio.test").debug("told")
    captured = capsys.readouterr()
    assert "told" in captured.err
    assert captured.out == ""


class FullDisk(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_log_that_cannot_be_written_is_told_once_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "layby.log"
    log_to_file(path, LogLevel.INFO)
    handler = logging.getLogger().handlers[-1]
    assert isinstance(handler, logging.FileHandler)
    before = handler.setStream(FullDisk())
    assert before is not None
    before.close()
    for number in range(3):
        logging.getLogger("studio.test").info("line %d", number)
    told = capsys.readouterr().err
    assert told == f"layby: {path} cannot be written: [Errno 28] No space left on device\n"
