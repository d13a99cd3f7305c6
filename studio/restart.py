"""Starts the program again in the place of this process, as it was started. Once everything of it is closed.

It keeps its process where the system can do that, so whoever waits for it (a terminal, `dev.py run`) waits on.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Sequence


def command_of(program: Sequence[str], arguments: Sequence[str], *, is_frozen: bool) -> list[str]:
    """The command that starts Layby with these arguments.

    `program` is how Python was started, without the program's own arguments: `python -m studio`, or `python` and the
    path of `layby`. A frozen program is its own interpreter.
    """
    start = [sys.executable] if is_frozen else [sys.executable, *program[1:]]
    return [*start, *arguments]


def start_again(arguments: Sequence[str]) -> int:
    """Start it with these arguments; comes back, with 0, only where a program cannot take another's place.

    Raises OSError where the program is not there any more.
    """
    program = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    command = command_of(program, arguments, is_frozen=getattr(sys, "frozen", False))
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    if sys.platform != "win32":
        os.execv(command[0], command)
    subprocess.Popen(command)
    return 0
