"""For tests of the window: a themed application, the Qt loop, and a look at what a test leaves behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import qasync
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from fakes.patience import Patience, bounded
from fakes.shots import Spoken
from studio.models.settings import Theme as ThemeChoice
from studio.views.theme import Theme

_LONGEST_TEST_S = 240.0
"""Less than pytest's own limit, which could only say that the loop is idle."""


@pytest.fixture(autouse=True)
def _no_dangling_widget(qapp: QApplication) -> Iterator[None]:
    """Fail a test that leaves a window behind."""
    yield
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    left = [widget for widget in qapp.topLevelWidgets() if widget.isVisible()]
    for widget in left:
        widget.close()
    assert not left


@pytest.fixture(autouse=True)
def _language(qapp: QApplication) -> Iterator[None]:
    """The program speaks what `fakes.gallery` asks for."""
    with Spoken():
        yield


@pytest.fixture(autouse=True)
def _no_popup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Menus are filled but not put on screen: the offscreen platform cannot grab the keyboard for them."""
    monkeypatch.setattr(QMenu, "popup", lambda *_: None)


@pytest.fixture
def qtbot(qtbot: QtBot) -> QtBot:
    """pytest-qt's own, but patient: a busy machine is no failure."""

    def wait_until(look: Callable[[], object]) -> None:
        patience = Patience()
        while not look():
            patience.spend()
            qtbot.wait(1)

    qtbot.waitUntil = wait_until
    return qtbot


@pytest.fixture
def theme(qapp: QApplication) -> Iterator[Theme]:
    """The light theme, applied."""
    made = Theme(qapp)
    made.apply(ThemeChoice.LIGHT, 14)
    yield made
    made.close()


@pytest.fixture
def page(theme: Theme, qtbot: Any) -> QWidget:
    """A shown widget to put the widget under test into."""
    widget = QWidget()
    widget.resize(800, 600)
    qtbot.addWidget(widget)
    widget.show()
    return widget


@pytest.fixture
def play(qapp: QApplication) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a coroutine on a Qt loop, as `layby` does; what is left of the loop is freed here.

    The loop's timers hang in a cycle of references, and a collection that happens to run in another thread could not
    stop them.
    """

    def run(work: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(qapp)) as runner:
            runner.run(bounded(work, Patience(_LONGEST_TEST_S)))
        del runner
        gc.collect()

    return run
