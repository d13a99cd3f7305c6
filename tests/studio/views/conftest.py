"""For tests of the window: a themed application, the Qt loop, and a look at what a test leaves behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import qasync
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QWidget
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


def _outside_of_tasks(process: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no loop runs
            task = None
        assert task is None, (
            "a task that is due here could not run and would never be woken again; await instead"
        )
        return process(*args, **kwargs)

    return guarded


@pytest.fixture(autouse=True)
def _no_loop_within_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever processes Qt's events within a coroutine takes other tasks their turn for good: asyncio refuses it."""
    for owner, name in ((QCoreApplication, "processEvents"), (QTest, "qWait")):
        monkeypatch.setattr(owner, name, staticmethod(_outside_of_tasks(getattr(owner, name))))
    for owner in (QEventLoop, QDialog):
        monkeypatch.setattr(owner, "exec", _outside_of_tasks(owner.exec))


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
