"""The side bar: rows in words, search, picking, renaming, order of last use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QAbstractItemModel, QEvent, QModelIndex, Qt
from PySide6.QtGui import QContextMenuEvent, QHelpEvent
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QListView, QToolTip

from engine.api import PromptProgress
from engine.errors import DeviceFailure
from engine.runs import RunState
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from studio.views.actions import CommandId
from studio.views.sidebar.chat_list_model import ChatListModel, RowRole
from studio.views.sidebar.chat_menu import ChatMenu
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.sidebar.list_rows import HeaderRow
from studio.views.tips import tip_of
from studio.views.undo_bar import UndoBar

Play = Callable[[Coroutine[Any, Any, None]], None]


def list_of(stage: Stage) -> QListView:
    return stage.window.findChild(QListView, "conversations")


def said(stage: Stage) -> list[str]:
    """What a screen reader says for each row that is no heading."""
    model: QAbstractItemModel = list_of(stage).model()
    indexes = [model.index(row, 0) for row in range(model.rowCount())]
    shown = [one for one in indexes if not isinstance(one.data(RowRole.ROW), HeaderRow)]
    return [index.data(Qt.ItemDataRole.AccessibleTextRole) for index in shown]


def row_named(stage: Stage, title: str) -> QModelIndex:
    """The row of a title."""
    model: QAbstractItemModel = list_of(stage).model()
    indexes = (model.index(row, 0) for row in range(model.rowCount()))
    return next(index for index in indexes if index.data() == title)


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
            stage.engine.park(ids["C"])
            stage.engine.publish(
                make_run(ids["A"], RunState.QUEUED, wait=make_wait(place=3)),
                make_run(
                    ids["C"],
                    RunState.PARKED,
                    wait=make_wait(place=2),
                    expected_wait_s=(6.0, 10.0),
                ),
            )
            stage.engine.fail(ids["D"], DeviceFailure("row 3"))
            stage.engine.finish(ids["E"])
            await until(lambda: {"E, Done", "A, Queued, 3rd"} <= set(said(stage)))
            assert sorted(said(stage)) == [
                "A, Queued, 3rd",
                "B, Reading 1,200 of 3,400 tokens",
                "C, Parked, 2nd · back in 6 to 10 s",
                "D, Failed · row 3",
                "E, Done",
            ]

    play(story())


def test_chats_that_are_not_opened_yet_tell_what_ended_badly(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("D", "C", "B", "A")) as stage:
            ids = {chat.title: await stage.ask(chat, "Hello?") for chat in list(stage.chats.chats)}
            stage.engine.fail(ids["B"], DeviceFailure("row 3"))
            stage.engine.finish(ids["C"])
            await until(lambda: {"B, Failed · row 3", "C, Done"} <= set(said(stage)))
        async with open_stage(tmp_path) as stage:
            assert sum(chat.is_loaded for chat in stage.chats.chats) <= 1
            words = dict(line.split(", ", 1) for line in said(stage))
            assert words["A"] == words["D"] == "Interrupted when Layby closed"
            assert words["B"].startswith("Failed")
            assert words["C"] == "Done"

    play(story())


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_what_a_row_may_have_no_room_for_is_in_its_tip(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("B", "A <b>long</b> " * 40)) as stage:
            chat = stage.chats.chats[1]
            stage.engine.fail(await stage.ask(chat, "Hello?"), DeviceFailure("row 3 " * 40))
            await until(lambda: any("row 3" in line for line in said(stage)))
            model = list_of(stage).model()
            tips = {
                index.data(): index.data(Qt.ItemDataRole.ToolTipRole)
                for index in (model.index(row, 0) for row in range(model.rowCount()))
            }
            assert tips["B"] == "B\nFailed · " + "row 3 " * 40
            assert tips[stage.chats.chats[1].title].startswith("A <b>long</b> A")
            rows = list_of(stage)
            spot = rows.visualRect(row_named(stage, "B")).center()
            viewport = rows.viewport()
            event = QHelpEvent(QEvent.Type.ToolTip, spot, viewport.mapToGlobal(spot))
            QApplication.sendEvent(viewport, event)
            assert QToolTip.text() == tip_of(tips["B"])
            QToolTip.hideText()

    play(story())


def test_the_chat_used_last_stands_first(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            model = stage.window.findChild(ChatListModel)
            QAbstractItemModelTester(
                model, QAbstractItemModelTester.FailureReportingMode.Warning, stage.window
            )
            await until(lambda: titles(stage) == ["C", "B", "A"])
            oldest = stage.chats.chats[-1]
            stage.engine.finish(await stage.ask(oldest, "Hello?"))
            await until(lambda: titles(stage) == ["A", "C", "B"])
            await stage.chats.new_chat()
            await until(lambda: titles(stage) == ["New chat", "A", "C", "B"])
            await stage.chats.delete(oldest)
            await until(lambda: titles(stage) == ["New chat", "C", "B"])

    play(story())


def test_the_search_filters_titles(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon trip", "Recipes", "Mail to Lisa")) as stage:
            stage.window.commands[CommandId.SEARCH].trigger()
            field = stage.window.findChild(Sidebar).findChild(QLineEdit)
            QTest.keyClicks(field, "lis")
            await until(lambda: titles(stage) == ["Mail to Lisa", "Lisbon trip"])
            QTest.keyClicks(field, "zzz")
            await until(lambda: titles(stage) == [])
            QTest.keyClick(field, Qt.Key.Key_Escape)
            await until(lambda: len(titles(stage)) == 3)

    play(story())


def test_a_click_and_enter_pick_a_chat(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            rows = list_of(stage)
            middle = stage.chats.chats[1]
            spot = rows.visualRect(row_named(stage, middle.title)).center()
            QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=spot)
            await until(lambda: stage.window.panes.active.chat is middle)
            rows.setFocus()
            QTest.keyClick(rows, Qt.Key.Key_Down)
            QTest.keyClick(rows, Qt.Key.Key_Return)
            await until(lambda: stage.window.panes.active.chat is stage.chats.chats[2])

    play(story())


def test_from_the_search_down_leads_into_the_list_and_enter_opens_the_first_hit(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon trip", "Recipes", "Mail")) as stage:
            rows, lisbon = list_of(stage), stage.chats.chats[2]
            stage.window.commands[CommandId.SEARCH].trigger()
            field = stage.window.findChild(Sidebar).findChild(QLineEdit)
            QTest.keyClicks(field, "lis")
            QTest.keyClick(field, Qt.Key.Key_Return)
            await until(lambda: stage.window.panes.active.chat is lisbon)
            field.clear()
            field.setFocus()
            QTest.keyClick(field, Qt.Key.Key_Down)
            await until(rows.hasFocus)
            assert rows.currentIndex().data() == "Mail"

    play(story())


def test_the_list_shows_that_tab_has_reached_it(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=tuple(f"Chat {n}" for n in range(40))) as stage:
            rows, last = list_of(stage), stage.chats.chats[-1]
            await stage.window.panes.show_chat(last)
            rows.verticalScrollBar().setValue(0)
            rows.setFocus(Qt.FocusReason.TabFocusReason)
            await until(rows.hasFocus)
            row = rows.visualRect(rows.currentIndex())
            assert rows.viewport().rect().contains(row)
            image, accent = rows.grab().toImage(), stage.window.context.theme.colors.accent
            column = [
                image.pixelColor(row.center().x(), y) for y in range(row.top(), row.top() + 4)
            ]
            assert accent in column

    play(story())


def test_a_right_click_opens_the_menu_of_a_chat(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            rows, middle = list_of(stage), stage.chats.chats[1]
            spot = rows.visualRect(row_named(stage, middle.title)).center()
            reason = QContextMenuEvent.Reason.Mouse
            event = QContextMenuEvent(reason, spot, rows.viewport().mapToGlobal(spot))
            QApplication.sendEvent(rows.viewport(), event)
            menu = stage.window.findChild(ChatMenu)
            actions = {a.text(): a for a in menu.actions() if a.text()}
            assert list(actions) == [
                *("Rename", "Open beside", "Open in its own window", "Duplicate", "Pin"),
                *("Move to folder", "Archive", "Export…", "Delete"),
            ]
            actions["Open beside"].trigger()
            await until(lambda: stage.window.panes.pane_of(middle) is not None)
            assert len(stage.window.panes.panes) == 2
            actions["Rename"].trigger()
            editor = rows.viewport().findChild(QLineEdit)
            assert editor.text() == "B"
            QTest.keyClick(editor, Qt.Key.Key_Escape)
            actions["Delete"].trigger()
            await until(lambda: middle not in stage.chats.chats)

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
            await until(lambda: titles(stage) == ["New title"])

    play(story())


def test_a_running_reply_does_not_disturb_renaming_or_the_keyboard(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            chat, rows = stage.chats.chats[0], list_of(stage)
            request_id = await stage.ask(chat, "Hello?")
            stage.engine.start(request_id)
            rows.setCurrentIndex(row_named(stage, "A"))
            stage.engine.say(request_id, "x")
            await until(lambda: "C, Writing" in said(stage)[0])
            assert rows.currentIndex().data() == "A"
            stage.window.commands[CommandId.RENAME_CHAT].trigger()
            editor = rows.viewport().findChild(QLineEdit)
            editor.setText("half")
            redrawn = asyncio.Event()
            rows.model().dataChanged.connect(redrawn.set)
            stage.engine.say(request_id, "y")
            await until(redrawn.is_set)
            assert editor.text() == "half"

    play(story())


def test_delete_in_the_list_deletes_at_once_and_undo_brings_back(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            rows, bar = list_of(stage), stage.window.findChild(UndoBar)
            rows.setFocus()
            rows.setCurrentIndex(row_named(stage, "A"))
            await until(rows.hasFocus)
            QTest.keyClick(rows, Qt.Key.Key_Backspace)
            await until(lambda: titles(stage) == ["B", "A"])
            QTest.keyClick(rows, Qt.Key.Key_Delete)
            await until(lambda: titles(stage) == ["B"])
            await until(bar.isVisible)
            assert bar.accessibleName() == "Deleted “A”"
            rows.setFocus()
            await until(rows.hasFocus)
            QTest.keyClick(rows, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
            await until(lambda: titles(stage) == ["B", "A"])
            assert not bar.isVisible()

    play(story())


def test_many_chats_are_listed_at_once(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            for number in range(60):
                await stage.chats.rename(await stage.chats.new_chat(), f"Chat {number}")
            rows = list_of(stage)
            await until(lambda: len(said(stage)) == 61)
            assert rows.verticalScrollBar().maximum() > 1000
            assert rows.grab().width() > 0

    play(story())
