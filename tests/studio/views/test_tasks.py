"""Tasks of the window: kept until they end, and what they raise becomes a notice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from PySide6.QtCore import QAbstractEventDispatcher, QEventLoop
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog
from pytestqt.qtbot import QtBot

from engine.errors import ModelNotFound
from fakes.fake_window import until
from studio.models.errors import StoreFull
from studio.services.notice_service import NoticeService
from studio.views.tasks import Tasks

Play = Callable[[Coroutine[Any, Any, None]], None]


def codes(notices: NoticeService) -> list[str]:
    return [notice.code for notice in notices.notices.notices]


def test_our_errors_become_their_notices(play: Play) -> None:
    async def story() -> None:
        notices = NoticeService()
        tasks = Tasks(notices)
        for error in (ModelNotFound("no x"), StoreFull("0 bytes left")):
            tasks.start(fail(error))
        await until(lambda: not tasks.num_running)
        assert set(codes(notices)) == {"model_not_found", "store_full"}

    play(story())


def test_any_other_error_becomes_a_notice_and_a_line_in_the_log(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        notices = NoticeService()
        tasks = Tasks(notices)
        tasks.start(fail(ZeroDivisionError("by zero")))
        await until(lambda: not tasks.num_running)
        assert codes(notices) == ["window_task_failed"]

    play(story())
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info


def test_closing_cancels_what_still_runs(play: Play) -> None:
    async def story() -> None:
        notices = NoticeService()
        tasks = Tasks(notices)
        tasks.start(asyncio.Event().wait())
        assert tasks.num_running == 1
        tasks.cancel_all()
        await until(lambda: not tasks.num_running)
        assert codes(notices) == []

    play(story())


async def fail(error: Exception) -> None:
    raise error


def test_a_task_that_is_due_while_another_one_processes_events_would_never_be_woken(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    """Why no test and nothing in the window may do that: this is how a window hangs, idle, for good."""

    async def story() -> None:
        go_on, has_gone_on = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            await go_on.wait()
            has_gone_on.set()

        waiting = asyncio.tasks._PyTask(wait())  # type: ignore[attr-defined]  # can be rescued
        await asyncio.sleep(0.01)
        go_on.set()
        dispatcher = QAbstractEventDispatcher.instance()
        assert dispatcher is not None
        while not caplog.records:
            dispatcher.processEvents(QEventLoop.ProcessEventsFlag.AllEvents)
        await asyncio.sleep(0.05)
        assert not has_gone_on.is_set()
        asyncio.get_running_loop().call_soon(waiting._Task__step)
        await has_gone_on.wait()

    play(story())
    assert "Cannot enter into task" in caplog.text


def test_tests_that_would_do_so_are_told(play: Play, qtbot: QtBot) -> None:
    async def story() -> None:
        for process in (
            QApplication.processEvents,
            QEventLoop().exec,
            QDialog().exec,
            lambda: QTest.qWait(1),
            lambda: qtbot.wait(1),
        ):
            with pytest.raises(AssertionError, match="await instead"):
                process()

    play(story())
