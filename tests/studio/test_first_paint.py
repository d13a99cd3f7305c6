"""The window is drawn before what is large and not needed for that is read from the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fakes.tiny_files import write_tiny_gguf

ROOT = Path(__file__).resolve().parents[2]
START = """
import sys
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow

application = QApplication(["layby"])
large = ("torch", "numpy", "gguf", "engine.runtime", "engine.formats", "fastapi", "pydantic", "httpx", "mcp", "PIL")
early = []


class FirstPaint(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and isinstance(watched, QMainWindow):
            early.extend(name for name in large if name in sys.modules)
            application.removeEventFilter(self)
        return False


def end():
    for window in application.topLevelWidgets():
        if isinstance(window, QMainWindow) and window.context.services.models.model is not None:
            if window.context.services.models.state.value == "ready":
                timer.stop()
                window.quit()


watch = FirstPaint()
application.installEventFilter(watch)
timer = QTimer()
timer.timeout.connect(end)
timer.start(20)

from studio.__main__ import main

code = main(sys.argv[1:])
print("early:", early, "code:", code)
"""


@pytest.mark.slow
def test_the_window_is_drawn_first_and_the_model_loads_all_the_same(tmp_path: Path) -> None:
    model = write_tiny_gguf(tmp_path / "model")
    done = subprocess.run(
        [sys.executable, "-c", START, "--model", str(model)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "early: [] code: 0" in done.stdout, done.stdout + done.stderr
