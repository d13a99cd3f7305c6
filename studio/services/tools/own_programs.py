"""The programs that servers of tools are: marked as ours in their environment, so that none outlives us. Any thread.

One that hangs in a call hears of nobody's end. Whoever was killed could not end it: the next start does.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress

import psutil

MARK = "LAYBY_TOOL_SERVER"
"""The variable; all that a program starts has it too."""
_CLOCK_S = 600.0
"""When a process began is told by a clock that may have been put right since."""


def new_mark() -> str:
    """A mark for one server: which process it belongs to, and since when that runs, as numbers are used again."""
    owner = psutil.Process()
    return f"{owner.pid}-{owner.create_time():.2f}-{secrets.token_hex(16)}"


def end_marked(mark: str) -> None:
    """End what a program has left behind: the package ends only those that do not go by themselves."""
    _end(lambda found: found == mark)


def end_left_behind() -> None:
    """End the programs of processes that are no more."""
    _end(lambda found: not _has_owner(found))


def _end(is_meant: Callable[[str], bool]) -> None:
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            found = process.environ().get(MARK)
            if found is not None and is_meant(found):
                process.kill()


def _has_owner(mark: str) -> bool:
    """Whether the process of a mark runs; also where that cannot be told."""
    pid, _, rest = mark.partition("-")
    started_s, _, _ = rest.partition("-")
    try:
        is_off_s = psutil.Process(int(pid)).create_time() - float(started_s)
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, ValueError):
        return True
    return bool(abs(is_off_s) < _CLOCK_S)
