"""Tool tips are windows of their own, which the offscreen platform cannot raise."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QToolTip


@pytest.fixture(autouse=True)
def _no_tool_tip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QToolTip, "showText", lambda *_: None)
