"""A thing that is asked for over and over is done at once, and once more for all that came after."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from studio.views.settling import Settling


def test_the_first_ask_is_answered_at_once_and_the_others_together(
    qapp: QApplication, qtbot: Any
) -> None:
    done: list[int] = []
    parent = QObject()
    settling = Settling(lambda: done.append(1), parent)
    for _ in range(1_000):
        settling.ask()
    assert len(done) == 1
    qtbot.waitUntil(lambda: len(done) == 2)
    settling.ask()
    settling.settle()
    assert len(done) == 3
    settling.ask()
    settling.ask()
    settling.settle()
    assert len(done) == 5
    settling.ask()
    settling.ask()
    settling.close()
    assert len(done) == 6
    del parent
