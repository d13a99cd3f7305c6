"""The undo bar: says what was done, goes by itself unless it is used, and takes back once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QRect, QTimer
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from fakes.fake_window import open_stage, until
from fakes.shots import shoot
from studio.models.undo import Undo, UndoKind
from studio.services.chat_book import ChatBook
from studio.services.notice_service import NoticeService
from studio.views.actions import CommandId
from studio.views.monitor.status_line import StatusLine
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.sidebar.search_field import SearchField
from studio.views.tasks import Tasks
from studio.views.top_bar import TopBar
from studio.views.undo_bar import UndoBar, words_of

Play = Callable[[Coroutine[Any, Any, None]], None]


async def nothing() -> None:
    """There is nothing to take back."""


def test_it_takes_back_once_and_is_gone(play: Play, page: QWidget) -> None:
    runs: list[int] = []

    async def back() -> None:
        runs.append(1)

    async def story() -> None:
        book, tasks = ChatBook(), Tasks(NoticeService())
        bar = UndoBar(book, tasks, page)
        book.undo_offered.emit(Undo(kind=UndoKind.CHATS_DELETED, name="A", run=back))
        assert bar.isVisible()
        bar.findChild(QPushButton).click()
        bar.take_back()
        await until(lambda: not tasks.num_running)
        assert (runs, bar.isVisible(), bar.undo) == ([1], False, None)
        bar.close_bar()

    play(story())


def test_it_goes_by_itself_but_not_from_under_the_keyboard(page: QWidget) -> None:
    book = ChatBook()
    bar = UndoBar(book, Tasks(NoticeService()), page)
    page.activateWindow()
    book.undo_offered.emit(Undo(kind=UndoKind.MESSAGE_DELETED, run=nothing))
    bar.findChild(QPushButton).setFocus()
    timer = bar.findChild(QTimer)
    timer.timeout.emit()
    assert bar.isVisible()
    bar.findChild(QPushButton).clearFocus()
    timer.timeout.emit()
    assert not bar.isVisible()
    assert bar.undo is not None  # the menu still has it
    bar.close_bar()
    book.undo_offered.emit(Undo(kind=UndoKind.MESSAGE_DELETED, run=nothing))
    assert not bar.isVisible()


def test_it_covers_nothing_beside_the_side_bar(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Oslo", "A very long title " * 4)) as stage:
            window = stage.window
            await stage.chats.shelf.delete([stage.chats.chats[0]])
            bar = window.chat_commands.undo_bar
            await until(bar.isVisible)
            sidebar, label = window.findChild(Sidebar), bar.findChild(QLabel)
            assert bar.geometry().right() <= sidebar.mapTo(window, sidebar.rect().topRight()).x()
            assert label.height() >= label.heightForWidth(label.width())
            await until(lambda: not sidebar.foot.isHidden())
            await stage.settle()
            top = sidebar.foot.mapTo(window, QPoint()).y()
            assert bar.geometry().bottom() < top, "the way to what was deleted"

    play(story())


def test_without_the_side_bar_it_covers_nothing_of_the_chat(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Oslo", "A very long title " * 4)) as stage:
            window, pane = stage.window, stage.window.panes.active

            def covered() -> list[str]:
                at = QRect(bar.mapTo(window, QPoint()), bar.size())
                parts = (pane, window.findChild(TopBar), window.findChild(StatusLine))
                return [
                    type(one).__name__
                    for one in parts
                    if at.intersects(QRect(one.mapTo(window, QPoint()), one.size()))
                ]

            window.commands[CommandId.SIDEBAR].trigger()
            gone = stage.chats.chats[0]
            await stage.chats.shelf.delete([gone])
            bar = window.chat_commands.undo_bar
            await until(lambda: bar.isVisible() and bar.height() > 20)
            await until(lambda: not covered())
            shoot(window, "undo-strip")
            window.commands[CommandId.SIDEBAR].trigger()
            await until(lambda: bar.isVisible() and bar.x() < 20)
            sidebar = window.findChild(Sidebar)
            assert bar.geometry().right() <= sidebar.mapTo(window, sidebar.rect().topRight()).x()
            window.commands[CommandId.SIDEBAR].trigger()
            await until(lambda: not covered())
            bar.findChild(QPushButton).click()
            await until(lambda: len(stage.chats.chats) == 2)
            assert not bar.isVisible()
            await until(lambda: window.panes.active.chat is gone)

    play(story())


def press_undo(field: QWidget, keys: str = "Ctrl+Z") -> None:
    QTest.keySequence(field, QKeySequence(keys))


@pytest.mark.parametrize("place", ["composer", "search", "own window"])
def test_the_key_takes_back_from_a_field_with_nothing_of_its_own_to_undo(
    play: Play, tmp_path: Path, place: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Oslo", "Lisbon", "Rome")) as stage:
            window, chats = stage.window, stage.chats.chats
            home = window
            if place == "own window":
                window.chat_commands.windows.open(chats[1])
                home = window.chat_commands.windows.windows[chats[1]]
            home.activateWindow()
            field = {
                "composer": lambda: window.panes.active.composer.focusProxy(),
                "search": lambda: window.findChild(SearchField),
                "own window": lambda: home.pane.composer.focusProxy(),
            }[place]()
            gone = chats[0]
            await stage.chats.shelf.delete([gone])
            await until(lambda: window.panes.active.chat not in (None, gone))
            field.setFocus()
            await until(field.hasFocus)
            QTest.keyClicks(field, "ab")
            press_undo(field)
            assert gone in stage.chats.book.deleted
            assert "ab" not in (field.text() if place == "search" else field.toPlainText())
            press_undo(field)
            await until(lambda: gone in stage.chats.chats)
            assert window.chat_commands.undo_bar.isHidden()
            press_undo(field)  # nothing is left
            await stage.chats.shelf.delete([gone])
            await until(lambda: stage.window.commands[CommandId.UNDO].isEnabled())

    play(story())


def test_a_deleted_message_comes_back_by_key(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Oslo",)) as stage:
            chat = stage.chats.chats[0]
            stage.engine.finish(await stage.ask(chat, "Hello?"))
            await until(lambda: chat.running_message is None)
            gone = chat.messages[-1]
            await stage.chats.versions.delete_message(chat, gone)
            field = stage.window.panes.active.composer.focusProxy()
            field.setFocus()
            await until(field.hasFocus)
            press_undo(field)
            await until(lambda: gone in chat.messages)

    play(story())


def test_the_key_is_the_users_choice(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Oslo", "Lisbon")) as stage:
            window, gone = stage.window, stage.chats.chats[0]
            window.app.shortcuts.change(CommandId.UNDO, ("Ctrl+Alt+Z",))
            await stage.chats.shelf.delete([gone])
            field = window.panes.active.composer.focusProxy()
            field.setFocus()
            await until(field.hasFocus)
            press_undo(field)
            await until(lambda: not window.context.tasks.num_running)
            assert gone in stage.chats.book.deleted
            press_undo(field, "Ctrl+Alt+Z")
            await until(lambda: gone in stage.chats.chats)

    play(story())


@pytest.mark.parametrize("kind", list(UndoKind))
def test_every_kind_has_its_words_for_one_and_for_several(kind: UndoKind) -> None:
    one = words_of(Undo(kind=kind, name="Lisbon", run=nothing))
    assert one
    if "CHATS" in kind.name:
        assert "Lisbon" in one
        assert "3 chats" in words_of(Undo(kind=kind, number=3, run=nothing))
