"""For tests of what must never be opened: things with the name of a file that are none, and calls that must return."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

_RETURNS_WITHIN_S = 20.0


def _make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        before = Path.cwd()
        os.chdir(path.parent)  # an address has room for some hundred characters
        try:
            bound.bind(path.name)
        finally:
            os.chdir(before)


def _link_to_pipe(path: Path) -> None:
    pipe = path.with_name("pipe elsewhere")
    os.mkfifo(pipe)
    path.symlink_to(pipe)


ODD_FILES: dict[str, Callable[[Path], None]] = {
    "pipe": lambda path: os.mkfifo(path),
    "socket": _make_socket,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/tty"),
    "folder": lambda path: path.mkdir(),
    "link to a pipe": _link_to_pipe,
    "link to a folder": lambda path: path.symlink_to(path.parent),
    "link to itself": lambda path: path.symlink_to(path),
}
"""By kind, what makes one at a path."""


def outcome_of(call: Callable[[], object]) -> object:
    """What a call returns or raises; the test fails, instead of hanging, if it does neither."""
    found: list[object] = []

    def work() -> None:
        try:
            found.append(call())
        except Exception as error:  # noqa: BLE001 - it is handed on
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(_RETURNS_WITHIN_S)
    assert found, "the call hangs"
    return found[0]
