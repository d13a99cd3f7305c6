"""A whole session of the window opens no connection and no port: nobody is told anything without being asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SESSION = """
import os, sys

seen = []

def watch(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
        address = arguments[1] if event != "socket.getaddrinfo" else arguments[0]
        if not (isinstance(address, (str, bytes)) and event != "socket.getaddrinfo"):
            seen.append((event, str(address)))

sys.addaudithook(watch)

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from studio.app import run_window
from studio.models.errand import Errand
from studio.paths import find_paths
from studio.services.settings_service import SettingsService
from studio.views.actions import CommandId
from studio.views.main_window import MainWindow

application = QApplication(["layby"])
paths = find_paths()
steps = iter([
    CommandId.NEW_CHAT, CommandId.PALETTE, CommandId.POOL, CommandId.SPLIT, CommandId.SETTINGS,
    CommandId.PRIVACY, CommandId.SHORTCUTS, CommandId.CHOOSE_MODEL, CommandId.SEARCH,
])

def inet_sockets():
    # What Python does not see: sockets that Qt or a library opened.
    inodes = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        try:
            lines = open(f"/proc/self/net/{name}").read().splitlines()[1:]
        except OSError:
            continue
        inodes |= {line.split()[9] for line in lines}
    found = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:
            continue
        if target.startswith("socket:[") and target[8:-1] in inodes:
            found.append(target)
    return found

def step():
    windows = [one for one in application.topLevelWidgets() if isinstance(one, MainWindow)]
    if not windows or windows[0].panes.active.chat is None:
        return
    if os.path.isdir("/proc/self/fd"):
        seen.extend(inet_sockets())
    command = next(steps, None)
    if command is None:
        timer.stop()
        windows[0].quit()
    else:
        windows[0].commands[command].trigger()

timer = QTimer()
timer.timeout.connect(step)
timer.start(20)
settings = SettingsService(paths.settings_file, environment={}, flags={})
what_ran = run_window(settings, paths, Errand(text="Hello?"))
print("what ran:", what_ran, "seen:", seen)
"""


@pytest.mark.slow
def test_a_session_of_the_window_opens_no_socket(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SESSION], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert "what ran: None seen: []" in done.stdout, done.stdout + done.stderr
