"""Programs of servers of tools end with us, or with the next start where we were killed; nobody else's do."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from studio.services.tools.own_programs import MARK, end_left_behind, end_marked, new_mark

SLEEP = "import time; time.sleep(600)"
TELL_MARK = "from studio.services.tools.own_programs import new_mark; print(new_mark())"
Programs = dict[str, "subprocess.Popen[bytes]"]


@pytest.fixture
def programs() -> Iterator[Programs]:
    """By name, ended after the test."""
    started: Programs = {}
    yield started
    for process in started.values():
        process.kill()
        process.wait()


def start(programs: Programs, name: str, mark: str | None) -> None:
    environment = {key: value for key, value in os.environ.items() if key != MARK}
    if mark is not None:
        environment[MARK] = mark
    programs[name] = subprocess.Popen([sys.executable, "-c", SLEEP], env=environment)
    started = psutil.Process(programs[name].pid)
    while started.status() != psutil.STATUS_ZOMBIE and "-c" not in started.cmdline():
        pass  # its environment is ours until it has begun


def alive(programs: Programs) -> list[str]:
    return [name for name, process in programs.items() if process.poll() is None]


def a_dead_ones_mark() -> str:
    told = subprocess.run([sys.executable, "-c", TELL_MARK], capture_output=True, check=True)
    return told.stdout.decode().strip()


def test_what_a_killed_program_left_is_ended_and_what_lives_is_not(programs: Programs) -> None:
    start(programs, "of nobody", None)
    start(programs, "of us", new_mark())
    start(programs, "of a dead one", a_dead_ones_mark())
    start(programs, "of another time", f"{os.getpid()}-1.00-abc")
    start(programs, "unreadable", "mark")
    end_left_behind()
    for name in ("of a dead one", "of another time"):
        programs[name].wait(timeout=60)
    assert alive(programs) == ["of nobody", "of us", "unreadable"]


def test_a_closed_link_ends_its_own_program_only(programs: Programs) -> None:
    mark = new_mark()
    start(programs, "own", mark)
    start(programs, "other", new_mark())
    end_marked(mark)
    programs["own"].wait(timeout=60)
    assert alive(programs) == ["other"]
