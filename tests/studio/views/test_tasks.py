"""Tasks of the window: kept until they end, and what they raise becomes a notice."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

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
