"""The newest notice is shown with what can be done about it, until it is put away."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget

from engine.errors import ContextLengthExceeded, ModelNotFound, ModelUnavailable, PoolFull
from studio.models.notices import Notice, NoticeAction, NoticeLevel
from studio.models.settings import Theme as ThemeChoice
from studio.services.notice_service import UNEXPECTED_NOTICE, NoticeService
from studio.views.icon_button import IconButton
from studio.views.notices.notice_bar import NoticeBar, action_words
from studio.views.notices.notice_text import NoticeText
from studio.views.theme import Theme


@pytest.fixture
def service() -> NoticeService:
    return NoticeService()


@pytest.fixture
def bar(service: NoticeService, theme: Theme, page: QWidget) -> NoticeBar:
    return NoticeBar(service, theme, page)


def test_without_a_notice_there_is_no_bar(bar: NoticeBar) -> None:
    assert not bar.isVisible()


def test_the_newest_notice_is_shown_and_the_older_one_comes_back(
    bar: NoticeBar, service: NoticeService
) -> None:
    service.report(ModelNotFound("there is no model called x"))
    service.report(ModelUnavailable("load one first"))
    assert bar.isVisible()
    assert bar.words == "No model is ready: load one first."
    bar.findChild(IconButton).click()
    assert bar.words == "This model cannot be used: there is no model called x."
    bar.findChild(IconButton).click()
    assert not bar.isVisible()


def test_what_comes_over_and_over_does_not_cover_what_is_newer(
    bar: NoticeBar, service: NoticeService
) -> None:
    service.show_unforeseen(UNEXPECTED_NOTICE)
    assert bar.words.startswith("Something in Layby did not work")
    service.show(Notice(code="exported", level=NoticeLevel.INFO, text="It was written"))
    service.show_unforeseen(UNEXPECTED_NOTICE)
    assert bar.words == "It was written."
    bar.findChild(IconButton).click()
    assert bar.words.startswith("Something in Layby did not work")
    bar.findChild(IconButton).click()
    service.show_unforeseen(UNEXPECTED_NOTICE)
    assert bar.isVisible()


def test_the_action_is_asked_for_and_the_notice_goes(
    bar: NoticeBar, service: NoticeService, qtbot: Any
) -> None:
    service.report(ContextLengthExceeded("too long", needed_tokens=9, limit_tokens=5))
    button = bar.findChild(QPushButton)
    assert button.text() == "New chat"
    with qtbot.waitSignal(bar.action_wanted) as asked:
        button.click()
    assert [notice.action for notice in asked.args] == [NoticeAction.NEW_CHAT]
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
    assert bar.words == "<b>x</b>: <img src=y>."


def test_a_closed_bar_hears_nothing(bar: NoticeBar, service: NoticeService) -> None:
    bar.close_bar()
    service.report(ModelUnavailable("load one first"))
    assert not bar.isVisible()


def laid_out(bar: NoticeBar, page: QWidget, width: int, height: int) -> NoticeText:
    """The words, in a bar across a window of that size."""
    page.resize(width, height)
    bar.resize(width, bar.sizeHint().height())
    bar.show()
    for _ in range(2):  # the height follows the width
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
        bar.resize(width, bar.sizeHint().height())
    return bar.findChild(NoticeText)


def test_words_have_their_height_but_leave_the_chat_its_room(
    bar: NoticeBar, service: NoticeService, page: QWidget
) -> None:
    service.show(Notice(code="x", level=NoticeLevel.INFO, text="Words. " * 60))
    sizes = ((1200, 900), (600, 900), (600, 300), (1200, 900))
    wide, narrow, low, again = (laid_out(bar, page, *size).height() for size in sizes)
    line = bar.fontMetrics().lineSpacing()
    assert wide < narrow <= 900 * 0.15 + 2
    assert 2 * line <= low <= 300 * 0.15 + 2
    assert again == wide


def test_words_that_scroll_can_be_scrolled_with_the_keyboard(
    bar: NoticeBar, service: NoticeService, page: QWidget
) -> None:
    service.show(Notice(code="x", level=NoticeLevel.INFO, text="Words. " * 60))
    assert laid_out(bar, page, 1200, 900).focusPolicy() is Qt.FocusPolicy.NoFocus
    text = laid_out(bar, page, 600, 300)
    assert text.focusPolicy() is Qt.FocusPolicy.TabFocus
    QTest.keyClick(text, Qt.Key.Key_PageDown)
    assert text.verticalScrollBar().value() > 0


def test_in_a_narrow_bar_the_button_stands_below_words_that_are_broken_and_not_cut(
    bar: NoticeBar, service: NoticeService, page: QWidget
) -> None:
    path = "/models/" + "a_name_without_any_end_" * 3 + ".gguf"
    service.report(ModelNotFound(f"there is no model {path}"))
    button = bar.findChild(QPushButton)
    for width, is_below in ((360, True), (1200, False), (360, True)):
        text = laid_out(bar, page, width, 1200)
        assert (button.y() >= text.geometry().bottom()) is is_below
        assert text.horizontalScrollBar().maximum() == 0
        assert text.verticalScrollBar().maximum() == 0
        assert button.geometry().right() < bar.width()


def test_words_keep_their_height_with_another_text_size(
    bar: NoticeBar, service: NoticeService, page: QWidget, theme: Theme
) -> None:
    service.show(Notice(code="x", level=NoticeLevel.INFO, text="Words. " * 30))
    for text_px in (14, 24, 12):
        theme.apply(ThemeChoice.LIGHT, text_px)
        assert laid_out(bar, page, 900, 900).verticalScrollBar().maximum() == 0


def test_several_particulars_are_a_line_each(bar: NoticeBar, service: NoticeService) -> None:
    lines = "a.txt is empty\nb.pdf is empty"
    text = "2 files were not attached"
    service.show(
        Notice(code="attachment_refused", level=NoticeLevel.WARNING, text=text, detail=lines)
    )
    assert bar.words == f"{text}:\n{lines}"
