"""Screenshots for people to look at: written where LAYBY_SCREENSHOTS names a folder, else not at all."""

from __future__ import annotations

import os
from pathlib import Path

from PySide6.QtWidgets import QWidget

VARIABLE = "LAYBY_SCREENSHOTS"


def shoot(widget: QWidget, name: str) -> None:
    """Grab a widget as it is on screen into NAME.png."""
    if folder := os.environ.get(VARIABLE):
        path = Path(folder) / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        assert widget.grab().save(str(path)), path
