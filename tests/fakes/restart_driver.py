"""A process that runs the real program, has it start again as somebody would who changes its language, and says so.

Run by the test of restarts, with LAYBY_HOME set: `python -m fakes.restart_driver --ctx-size 512`. The first time it
writes a draft, shows the pool, gives another chat a window of its own, loads the model that TEST_MODEL names, starts
the server, chooses German and presses the button; the second time it ends once all that is there again.
"""

from __future__ import annotations

import json
import os
import sys

from PySide6.QtCore import QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from engine.api import EngineState
from studio.__main__ import main
from studio.models.window_settings import Language
from studio.views.actions import CommandId
from studio.views.main_window import MainWindow
from studio.views.settings.pending_bar import PendingBars


def say(window: MainWindow) -> None:
    settings = window.context.services.settings.settings
    facts = {
        "process": os.getpid(),
        "quit": window.commands[CommandId.QUIT].text(),
        "draft": window.panes.active.composer.text(),
        "pool_panel": window.pool_panel.isVisible(),
        "ctx_size": settings.engine.ctx_size,
        "chats": len(window.context.services.chats.chats),
        "own_windows": len(window.chat_commands.windows.windows),
        "model": str(window.context.services.models.model.path),
    }
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def ask(window: MainWindow) -> None:
    tasks, services = window.context.tasks, window.context.services
    tasks.start(services.models.load(os.environ["TEST_MODEL"]))
    tasks.start(services.server.start())
    QTest.keyClicks(window.panes.active.composer.focusProxy(), "A draft too")
    window.commands[CommandId.OWN_WINDOW].trigger()  # another chat takes its place in the pane


def runs(window: MainWindow) -> bool:
    """Whether model, server and the other chat's window are there."""
    services = window.context.services
    is_ready = services.models.state is EngineState.READY and services.server.address is not None
    return is_ready and bool(window.chat_commands.windows.windows)


class Driver:
    """Acts once the window has a chat in its pane, and once what it asked for is there."""

    def __init__(self) -> None:
        self._timer = QTimer()
        self._timer.setInterval(20)
        self._timer.timeout.connect(self._look)
        self._timer.start()
        self._has_asked = False

    def _look(self) -> None:
        found = [one for one in QApplication.topLevelWidgets() if isinstance(one, MainWindow)]
        if not found or found[0].panes.active.chat is None:
            return
        (window,) = found
        settings = window.context.services.settings
        is_second = settings.settings.appearance.language is Language.GERMAN
        if not (is_second or self._has_asked):
            self._has_asked = True
            ask(window)
        if not runs(window):
            return
        self._timer.stop()
        if is_second:
            say(window)
            window.commands[CommandId.QUIT].trigger()
            return
        QTest.keyClicks(window.panes.active.composer.focusProxy(), "Not sent yet")
        window.commands[CommandId.POOL].trigger()
        window.settings_window.open()
        settings.change("appearance.language", Language.GERMAN)
        say(window)
        dialog = window.settings_window.dialog
        assert dialog is not None
        dialog.findChild(PendingBars).restart.button.click()


if __name__ == "__main__":
    application = QApplication(["layby"])
    driver = Driver()
    sys.exit(main())
