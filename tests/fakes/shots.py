"""Screenshots for people to look at: written where TEST_SCREENSHOTS names a folder, else not at all."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QWidget

VARIABLE = "TEST_SCREENSHOTS"


def shoot(widget: QWidget, name: str) -> None:
    """Grab a widget as it is on screen into NAME.png."""
    if folder := os.environ.get(VARIABLE):
        path = Path(folder) / f"{name}.png"
        for _ in range(2):  # what has its place may give others theirs
            QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        path.parent.mkdir(parents=True, exist_ok=True)
        assert widget.grab().save(str(path)), path
