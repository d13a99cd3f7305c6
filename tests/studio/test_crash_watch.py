"""What nobody caught is in the log and told; a crash of the process leaves a trace that the next run finds."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.crash_watch import CrashWatch

ROOT = Path(__file__).resolve().parents[2]
CRASH = """
import ctypes, sys
from pathlib import Path
from studio.crash_watch import CrashWatch

CrashWatch(Path(sys.argv[1]), lambda: None).start()
ctypes.string_at(0)
"""


@pytest.fixture
def told(tmp_path: Path) -> Iterator[tuple[CrashWatch, list[int]]]:
    times: list[int] = []
    watch = CrashWatch(tmp_path, lambda: times.append(1))
    watch.start()
    yield watch, times
    watch.stop()


def test_an_exception_that_nobody_caught_is_logged_and_told(
    told: tuple[CrashWatch, list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    try:
        raise RuntimeError("a slot broke")
    except RuntimeError as error:
        sys.excepthook(RuntimeError, error, error.__traceback__)
    assert "a slot broke" in caplog.text
    assert told[1] == [1]


def test_a_thread_that_ends_by_one_too(
    told: tuple[CrashWatch, list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    def work() -> None:
        raise RuntimeError("a thread broke")

    thread = threading.Thread(target=work, name="worker-7")
    thread.start()
    thread.join()
    assert "a thread broke" in caplog.text
    assert "worker-7" in caplog.text
    assert told[1] == [1]


def test_the_event_loops_own_troubles_too(
    told: tuple[CrashWatch, list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(told[0].on_loop_error)
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(story())
    assert "ZeroDivisionError" in caplog.text
    assert told[1] == [1]


def test_what_breaks_while_tidying_up_is_only_logged(
    told: tuple[CrashWatch, list[int]], caplog: pytest.LogCaptureFixture
) -> None:
    class Bad:
        def __del__(self) -> None:
            raise RuntimeError("a finaliser broke")

    Bad()
    gc.collect()
    assert "a finaliser broke" in caplog.text
    assert told[1] == []


def test_a_run_that_ends_well_leaves_no_file_and_gives_the_hooks_back(tmp_path: Path) -> None:
    before = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    watch = CrashWatch(tmp_path, lambda: None)
    watch.start()
    assert sys.excepthook != before[0]
    watch.stop()
    assert (sys.excepthook, threading.excepthook, sys.unraisablehook) == before
    assert list(tmp_path.iterdir()) == []
    assert not watch.last_run_crashed


@pytest.mark.skipif(sys.platform == "win32", reason="the null pointer is caught there")
def test_a_crash_leaves_a_trace_that_the_next_run_finds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path)], cwd=ROOT, check=False, capture_output=True
    )
    assert done.returncode != 0
    watch = CrashWatch(tmp_path, lambda: None)
    watch.start()
    watch.stop()
    assert watch.last_run_crashed
    assert "string_at" in (tmp_path / "crash-before.log").read_text()
    assert "the last run crashed" in caplog.text
    again = CrashWatch(tmp_path, lambda: None)
    again.start()
    again.stop()
    assert not again.last_run_crashed


def test_a_folder_that_cannot_be_written_is_no_reason_not_to_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    watch = CrashWatch(blocked / "logs", lambda: None)
    watch.start()
    watch.stop()
    assert "leave no trace" in caplog.text
