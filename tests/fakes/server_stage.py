"""A whole window on a scripted engine with the server's window open, and what its tests do with it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from PySide6.QtWidgets import QLabel, QMessageBox, QWidget

from fakes.fake_window import PretendServer, Stage, open_stage
from studio.models.request_log import RequestRow, RequestState
from studio.views.actions import CommandId
from studio.views.server.server_window import ServerWindow


@asynccontextmanager
async def open_server(folder: Path) -> AsyncIterator[tuple[Stage, ServerWindow]]:
    """What the server refuses (`PretendServer.refusal`) is forgotten afterwards."""
    try:
        async with open_stage(folder, titles=("A",)) as stage:
            stage.window.commands[CommandId.SERVER].trigger()
            window = stage.window.server_window.dialog
            assert isinstance(window, ServerWindow)
            yield stage, window
    finally:
        PretendServer.refusal = None


def words_of(widget: QWidget) -> str:
    """All that its labels say."""
    return " ".join(label.text() for label in widget.findChildren(QLabel) if not label.isHidden())


def press(box: QMessageBox, words: str) -> None:
    """Give the answer that is called so."""
    next(button for button in box.buttons() if button.text() == words).click()


def answer(widget: QWidget, words: str) -> None:
    """The same to the question that stands over a widget."""
    press(widget.findChild(QMessageBox), words)


def put_row(stage: Stage, *runs: str, took_s: float | None = None, error: str = "") -> RequestRow:
    """A request of a program with these runs, under way or done."""
    log, started_s = stage.server.log, time.time()
    made = RequestRow(
        row_id=log.new_id(),
        started_s=started_s,
        method="POST",
        path="/v1/chat/completions",
        client="editor",
        run_ids=runs,
        ended_s=started_s + took_s if took_s is not None else None,
        state=RequestState.RUNNING if took_s is None else RequestState.DONE,
        error=error,
    )
    log.put(made)
    return made
