"""The side bar: rows in words, search, picking, renaming, order of last use."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QLineEdit, QListView, QMessageBox

from engine.api import Parked, PromptProgress
from engine.errors import DeviceFailure
from fakes.fake_window import Stage, open_stage, until
from studio.views.actions import CommandId
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.sidebar.conversation_model import ConversationModel

Play = Callable[[Coroutine[Any, Any, None]], None]


def list_of(stage: Stage) -> QListView:
    return stage.window.findChild(QListView, "conversations")


def said(stage: Stage) -> list[str]:
    """What a screen reader says for each row."""
    model: QAbstractItemModel = list_of(stage).model()
    role = Qt.ItemDataRole.AccessibleTextRole
    return [model.index(row, 0).data(role) for row in range(model.rowCount())]


def titles(stage: Stage) -> list[str]:
    return [text.split(",")[0] for text in said(stage)]


def test_rows_tell_the_state_in_words(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("E", "D", "C", "B", "A")) as stage:
            ids = {chat.title: await stage.ask(chat, "Hello?") for chat in list(stage.chats.chats)}
            stage.engine.start(ids["B"], prompt_tokens=3400)
            stage.engine.emit(
                PromptProgress(request_id=ids["B"], computed_tokens=1200, prompt_tokens=3400)
            )
            for title in "CDE":
                stage.engine.start(ids[title])
            stage.engine.say(ids["C"], "x")
            stage.engine.emit(Parked(request_id=ids["C"], held_tokens=9, place=2, reason="full"))
            stage.engine.fail(ids["D"], DeviceFailure("row 3"))
            stage.engine.finish(ids["E"])
            await until(lambda: "E, Done" in said(stage))
            assert sorted(said(stage)) == [
                "A, Queued",
                "B, Reading 1,200 of 3,400 tokens",
                "C, Waiting for room · 2nd in line",
                "D, Failed · row 3",
                "E, Done",
            ]

    play(story())


def test_the_chat_used_last_stands_first(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            model = stage.window.findChild(ConversationModel)
            QAbstractItemModelTester(
                model, QAbstractItemModelTester.FailureReportingMode.Warning, stage.window
            )
            assert titles(stage) == ["C", "B", "A"]
            oldest = stage.chats.chats[-1]
            stage.engine.finish(await stage.ask(oldest, "Hello?"))
            assert titles(stage) == ["A", "C", "B"]
            await stage.chats.new_chat()
            assert titles(stage) == ["New chat", "A", "C", "B"]
            await stage.chats.delete(oldest)
            assert titles(stage) == ["New chat", "C", "B"]

    play(story())


def test_the_search_filters_titles(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon trip", "Recipes", "Mail to Lisa")) as stage:
            stage.window.commands[CommandId.SEARCH].trigger()
            field = stage.window.findChild(Sidebar).findChild(QLineEdit)
            QTest.keyClicks(field, "lis")
            assert titles(stage) == ["Mail to Lisa", "Lisbon trip"]
            QTest.keyClicks(field, "zzz")
            assert titles(stage) == []
            QTest.keyClick(field, Qt.Key.Key_Escape)
            assert len(titles(stage)) == 3

    play(story())


def test_a_click_and_enter_pick_a_chat(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            rows = list_of(stage)
            middle = stage.chats.chats[1]
            spot = rows.visualRect(rows.model().index(1, 0)).center()
            QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=spot)
            await until(lambda: stage.window.panes.active.chat is middle)
            rows.setFocus()
            QTest.keyClick(rows, Qt.Key.Key_Down)
            QTest.keyClick(rows, Qt.Key.Key_Return)
            await until(lambda: stage.window.panes.active.chat is stage.chats.chats[2])

    play(story())


def test_f2_renames_in_the_row(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Old",)) as stage:
            stage.window.commands[CommandId.RENAME_CHAT].trigger()
            editor = list_of(stage).viewport().findChild(QLineEdit)
            assert editor.text() == "Old"
            editor.selectAll()
            QTest.keyClicks(editor, "New title")
            QTest.keyClick(editor, Qt.Key.Key_Return)
            await until(lambda: stage.chats.chats[0].title == "New title")
            assert titles(stage) == ["New title"]

    play(story())


def test_a_running_reply_does_not_disturb_renaming_or_the_keyboard(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            chat, rows = stage.chats.chats[0], list_of(stage)
            request_id = await stage.ask(chat, "Hello?")
            stage.engine.start(request_id)
            rows.setCurrentIndex(rows.model().index(2, 0))
            stage.engine.say(request_id, "x")
            await until(lambda: "C, Writing" in said(stage)[0])
            assert rows.currentIndex().row() == 2
            stage.window.commands[CommandId.RENAME_CHAT].trigger()
            editor = rows.viewport().findChild(QLineEdit)
            editor.setText("half")
            before = stage.window.context.figures.num_flushes
            stage.engine.say(request_id, "y")
            await until(lambda: stage.window.context.figures.num_flushes > before)
            assert editor.text() == "half"

    play(story())


def test_delete_in_the_list_asks(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            rows = list_of(stage)
            rows.setFocus()
            rows.setCurrentIndex(rows.model().index(0, 0))
            await until(rows.hasFocus)
            QTest.keyClick(rows, Qt.Key.Key_Delete)
            box = stage.window.findChild(QMessageBox)
            assert "A" in box.text()
            box.reject()
            assert len(stage.chats.chats) == 1

    play(story())


def test_many_chats_are_listed_at_once(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            for number in range(60):
                await stage.chats.rename(await stage.chats.new_chat(), f"Chat {number}")
            rows = list_of(stage)
            assert rows.model().rowCount() == 61
            assert rows.verticalScrollBar().maximum() > 1000
            assert rows.grab().width() > 0

    play(story())
