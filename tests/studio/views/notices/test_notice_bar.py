"""The newest notice is shown with what can be done about it, until it is put away."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtWidgets import QLabel, QPushButton, QScrollArea, QWidget

from engine.errors import ContextLengthExceeded, ModelNotFound, ModelUnavailable, PoolFull
from studio.models.notices import Notice, NoticeAction, NoticeLevel
from studio.services.notice_service import NoticeService
from studio.views.icon_button import IconButton
from studio.views.notices.notice_bar import NoticeBar, action_words
from studio.views.theme import Theme


@pytest.fixture
def service() -> NoticeService:
    return NoticeService()


@pytest.fixture
def bar(service: NoticeService, theme: Theme, page: QWidget) -> NoticeBar:
    return NoticeBar(service, theme, page)


def texts(bar: NoticeBar) -> list[str]:
    return [label.text() for label in bar.findChildren(QLabel) if label.text()]


def test_without_a_notice_there_is_no_bar(bar: NoticeBar) -> None:
    assert not bar.isVisible()


def test_the_newest_notice_is_shown_and_the_older_one_comes_back(
    bar: NoticeBar, service: NoticeService
) -> None:
    service.report(ModelNotFound("there is no model called x"))
    service.report(ModelUnavailable("load one first"))
    assert bar.isVisible()
    assert texts(bar) == ["No model is ready: load one first"]
    bar.findChild(IconButton).click()
    assert texts(bar) == ["There is no such model: there is no model called x"]
    bar.findChild(IconButton).click()
    assert not bar.isVisible()


def test_the_action_is_asked_for_and_the_notice_goes(
    bar: NoticeBar, service: NoticeService, qtbot: Any
) -> None:
    service.report(ContextLengthExceeded("too long", needed_tokens=9, limit_tokens=5))
    button = bar.findChild(QPushButton)
    assert button.text() == "New chat"
    with qtbot.waitSignal(bar.action_wanted) as asked:
        button.click()
    assert asked.args == [NoticeAction.NEW_CHAT]
    assert not bar.isVisible()


def test_a_notice_without_an_action_has_no_button(bar: NoticeBar, service: NoticeService) -> None:
    service.show(Notice(code="x", level=NoticeLevel.INFO, text="All is well"))
    assert not bar.findChild(QPushButton).isVisible()
    assert action_words(NoticeAction.NONE) == ""


def test_a_notice_that_suggests_the_settings_has_their_button(
    bar: NoticeBar, service: NoticeService
) -> None:
    service.report(PoolFull("2,049 of 2,048", needed_tokens=2049, limit_tokens=2048))
    assert bar.findChild(QPushButton).text() == "Open settings"


def test_markup_in_a_notice_is_text(bar: NoticeBar, service: NoticeService) -> None:
    service.show(Notice(code="x", level=NoticeLevel.ERROR, text="<b>x</b>", detail="<img src=y>"))
    assert texts(bar) == ["<b>x</b>: <img src=y>"]


def test_a_closed_bar_hears_nothing(bar: NoticeBar, service: NoticeService) -> None:
    bar.close_bar()
    service.report(ModelUnavailable("load one first"))
    assert not bar.isVisible()


def test_words_have_their_height_but_leave_the_chat_its_room(
    bar: NoticeBar, service: NoticeService, page: QWidget, qtbot: Any
) -> None:
    def shown_px(width: int, height: int) -> int:
        page.resize(width, height)
        bar.setGeometry(0, 0, width, 200)
        qtbot.wait(1)
        return bar.findChild(QScrollArea).height()

    service.show(Notice(code="x", level=NoticeLevel.INFO, text="Words. " * 60))
    bar.show()
    wide, narrow, low = shown_px(1200, 900), shown_px(600, 900), shown_px(600, 300)
    line = bar.fontMetrics().lineSpacing()
    assert wide < narrow <= 900 * 0.15 + 1
    assert 2 * line <= low <= 300 * 0.15 + 1
    assert shown_px(1200, 900) == wide
