"""What users do in the side bar: folders, pins, several chats at once, text search, programs, the archive."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QModelIndex, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QDragEnterEvent, QDragMoveEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMessageBox

from engine.api import Origin
from engine.runs import ParkNow, ParkUsage, Priority, RunState, SetPriority
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from studio.views.actions import CommandId
from studio.views.chat.chat_pane import ChatPane
from studio.views.sidebar import chat_list_model
from studio.views.sidebar.chat_list import ChatList
from studio.views.sidebar.chat_list_model import RowRole
from studio.views.sidebar.chat_menu import ChatMenu
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.sidebar.list_rows import ChatRow
from studio.views.sidebar.search_field import SearchField
from studio.views.undo_bar import UndoBar

Play = Callable[[Coroutine[Any, Any, None]], None]


def rows_in(stage: Stage) -> list[str]:
    """The names of all rows, headings too."""
    model = list_of(stage).model()
    return [str(model.index(row, 0).data()) for row in range(model.rowCount())]


def list_of(stage: Stage) -> ChatList:
    return stage.window.findChild(ChatList)


def index_of(stage: Stage, name: str) -> QModelIndex:
    return list_of(stage).model().index(rows_in(stage).index(name), 0)


def click(
    stage: Stage, name: str, keys: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    rows = list_of(stage)
    spot = rows.visualRect(index_of(stage, name)).center()
    QTest.mouseClick(rows.viewport(), Qt.MouseButton.LeftButton, keys, spot)


def menu_of(stage: Stage, *names: str) -> dict[str, QAction]:
    """The menu for these rows, opened by keyboard or mouse: its entries by their words."""
    rows = [index_of(stage, name).data(RowRole.ROW) for name in names]
    list_of(stage).menu_wanted.emit(rows, QPoint(0, 0))
    menu = stage.window.findChild(ChatMenu)
    return {action.text(): action for action in menu.actions() if action.text()}


def test_a_new_folder_is_named_in_its_row_and_takes_what_is_dropped_on_it(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            stage.window.commands[CommandId.NEW_FOLDER].trigger()
            await until(lambda: list_of(stage).viewport().findChild(QLineEdit))
            editor = list_of(stage).viewport().findChild(QLineEdit)
            editor.selectAll()
            QTest.keyClicks(editor, "Work")
            QTest.keyClick(editor, Qt.Key.Key_Return)
            await until(lambda: "Work" in rows_in(stage))
            model = list_of(stage).model()
            dragged = model.mimeData([index_of(stage, "A"), index_of(stage, "C")])
            model.dropMimeData(dragged, Qt.DropAction.MoveAction, -1, -1, index_of(stage, "Work"))
            await until(lambda: rows_in(stage) == ["Folders", "Work", "C", "A", "Today", "B"])
            back = model.mimeData([index_of(stage, "A")])
            model.dropMimeData(back, Qt.DropAction.MoveAction, -1, -1, index_of(stage, "Today"))
            await until(lambda: rows_in(stage) == ["Folders", "Work", "C", "Today", "B", "A"])
            pinned = model.mimeData([index_of(stage, "B")])
            stage.chats.shelf.pin([stage.chats.chats[0]], is_pinned=True)
            await until(lambda: "Pinned" in rows_in(stage))
            model.dropMimeData(pinned, Qt.DropAction.MoveAction, -1, -1, index_of(stage, "Pinned"))
            await until(
                lambda: rows_in(stage) == ["Pinned", "C", "B", "Folders", "Work", "Today", "A"]
            )

    play(story())


def drag(rows: ChatList, data: QMimeData, spot: QPoint) -> None:
    left, move = Qt.MouseButton.LeftButton, Qt.DropAction.MoveAction
    plain = Qt.KeyboardModifier.NoModifier
    for event in (
        QDragEnterEvent(spot, move, data, left, plain),
        QDragMoveEvent(spot, move, data, left, plain),
        QDropEvent(QPointF(spot), move, data, left, plain),
    ):
        QApplication.sendEvent(rows.viewport(), event)


def test_a_folder_dropped_between_others_takes_that_place(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            for name in ("One", "Two", "Three"):
                await stage.chats.folders.new(name)
            await until(lambda: "Three" in rows_in(stage))
            rows = list_of(stage)
            for target, is_after, order in (
                ("One", False, ["Three", "One", "Two"]),
                ("Two", True, ["One", "Two", "Three"]),
            ):
                box = rows.visualRect(index_of(stage, target))
                data = rows.model().mimeData([index_of(stage, "Three")])
                drag(rows, data, box.bottomLeft() if is_after else box.topLeft())
                await until(lambda order=order: rows_in(stage)[1:4] == order)
            chat = rows.model().mimeData([index_of(stage, "A")])
            drag(rows, chat, rows.visualRect(index_of(stage, "Two")).topLeft())
            await until(lambda: stage.chats.chats[0].folder_id is not None)

    play(story())


def test_alt_and_the_arrow_keys_move_a_folder_and_the_menu_does_too(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            for name in ("One", "Two"):
                await stage.chats.folders.new(name)
            await until(lambda: "Two" in rows_in(stage))
            rows = list_of(stage)
            rows.setFocus()
            rows.go_to(index_of(stage, "Two"))
            QTest.keyClick(rows, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
            await until(lambda: rows_in(stage)[1:3] == ["Two", "One"])
            await until(lambda: rows.currentIndex().data() == "Two")
            menu = menu_of(stage, "Two")
            assert not menu["Move up"].isEnabled()
            menu["Move down"].trigger()
            await until(lambda: rows_in(stage)[1:3] == ["One", "Two"])

    play(story())


def test_a_drop_on_the_list_lands_on_the_row_under_the_pointer(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            await stage.chats.folders.new("Work")
            await until(lambda: "Work" in rows_in(stage))
            rows = list_of(stage)
            data = rows.model().mimeData([index_of(stage, "A")])
            spot = rows.visualRect(index_of(stage, "Work")).center()
            drag(rows, data, spot)
            await until(lambda: rows_in(stage) == ["Folders", "Work", "A", "Today", "B"])
            assert len(stage.chats.chats) == 2

    play(story())


def test_a_folder_dropped_into_another_lies_there_and_not_in_itself(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            await stage.chats.folders.new("Inner")
            outer = await stage.chats.folders.new("Outer")
            model = list_of(stage).model()
            move = Qt.DropAction.MoveAction
            for dragged, target in (("Inner", "Outer"), ("Outer", "Inner")):
                data = model.mimeData([index_of(stage, dragged)])
                model.dropMimeData(data, move, -1, -1, index_of(stage, target))
                await until(lambda: not stage.window.context.tasks.num_running)
            assert [one.name for one in stage.chats.folders.inside(outer.folder_id)] == ["Inner"]
            assert outer.parent_id is None

    play(story())


def test_the_arrow_keys_fold_and_unfold(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            work = await stage.chats.folders.new("Work")
            stage.chats.shelf.move([stage.chats.chats[1]], work.folder_id)
            rows = list_of(stage)
            await until(lambda: rows_in(stage) == ["Folders", "Work", "A", "Today", "B"])
            rows.setCurrentIndex(index_of(stage, "A"))
            QTest.keyClick(rows, Qt.Key.Key_Left)
            assert rows.currentIndex().data() == "Work"
            QTest.keyClick(rows, Qt.Key.Key_Left)
            await until(lambda: rows_in(stage) == ["Folders", "Work", "Today", "B"])
            QTest.keyClick(rows, Qt.Key.Key_Right)
            await until(lambda: "A" in rows_in(stage))
            QTest.keyClick(rows, Qt.Key.Key_Down)
            QTest.keyClick(rows, Qt.Key.Key_Down)
            assert rows.currentIndex().data() == "B"  # headings are passed over

    play(story())


def test_several_chats_are_selected_without_being_opened_and_deleted_at_once(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C", "D")) as stage:
            control = Qt.KeyboardModifier.ControlModifier
            open_chat = stage.window.panes.active.chat
            click(stage, "D")
            click(stage, "C", control)
            click(stage, "A", control)
            await until(lambda: not stage.window.context.tasks.num_running)
            assert stage.window.panes.active.chat is open_chat
            assert [chat.title for chat in list_of(stage).selected_chats()] == ["D", "C", "A"]
            entries = menu_of(stage, "D", "C", "A")
            assert "Rename" not in entries
            entries["Pin (3 chats)"].trigger()
            await until(lambda: rows_in(stage) == ["Pinned", "D", "C", "A", "Today", "B"])
            list_of(stage).setFocus()
            await until(list_of(stage).hasFocus)
            QTest.keyClick(list_of(stage), Qt.Key.Key_Delete)
            await until(lambda: [chat.title for chat in stage.chats.chats] == ["B"])
            bar = stage.window.findChild(UndoBar)
            await until(bar.isVisible)
            assert bar.accessibleName() == "3 chats deleted"
            bar.take_back()
            await until(lambda: len(stage.chats.chats) == 4)

    play(story())


def test_what_was_archived_and_deleted_is_listed_and_comes_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            c, b, _ = stage.chats.chats
            stage.chats.shelf.archive([b])
            await stage.chats.delete(c)
            await until(lambda: rows_in(stage) == ["Today", "A"])
            stage.window.commands[CommandId.ARCHIVED].trigger()
            await until(
                lambda: rows_in(stage) == ["Archived", "B", "Deleted, kept for 7 days", "C"]
            )
            assert list(menu_of(stage, "C")) == ["Bring back", "Delete for good…"]
            menu_of(stage, "C")["Bring back"].trigger()
            await until(lambda: rows_in(stage) == ["Archived", "B"])
            menu_of(stage, "B")["Take out of the archive"].trigger()
            await until(lambda: rows_in(stage) == [])
            await stage.chats.delete(b)
            menu_of(stage, "B")["Delete for good…"].trigger()
            box = stage.window.findChild(QMessageBox)
            next(one for one in box.buttons() if one.text() == "Delete for good").click()
            await until(lambda: rows_in(stage) == [])
            stage.window.commands[CommandId.ARCHIVED].trigger()
            await until(lambda: rows_in(stage) == ["Today", "C", "A"])

    play(story())


def test_the_search_looks_into_texts_and_leads_to_the_version_that_has_them(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            top, chat = stage.chats.chats
            request_id = await stage.ask(chat, "Where is the needle?")
            stage.engine.start(request_id)
            stage.engine.say(request_id, "Not here.")
            stage.engine.finish(request_id)
            await until(lambda: chat.running_message is None)
            await stage.chats.versions.edit_reply(chat, chat.messages[1], "In the haystack.")
            await stage.window.panes.show_chat(top)
            field = stage.window.findChild(SearchField)
            QTest.keyClicks(field, "not her")
            await until(lambda: "In messages" in rows_in(stage))
            row = index_of(stage, "A").data(RowRole.ROW)
            assert isinstance(row, ChatRow)
            assert row.snippet is not None
            assert row.snippet.text == "Not here."
            QTest.keyClick(field, Qt.Key.Key_Return)
            await until(lambda: stage.window.panes.active.chat is chat)
            await until(lambda: chat.messages[1].text == "Not here.")
            QTest.keyClick(field, Qt.Key.Key_Escape)
            await until(lambda: rows_in(stage) == ["Today", "A", "B"])

    play(story())


def test_requests_of_programs_stand_in_the_list_and_are_steered_there(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            waiting = make_run("chatcmpl-3f2a1b9c", RunState.QUEUED, wait=make_wait(place=2))
            parks = ParkUsage(budget_bytes=1 << 30)
            stage.engine.publish(replace(waiting, origin=Origin.API), parks=parks)
            await until(lambda: "Programs" in rows_in(stage))
            name = rows_in(stage)[1]
            assert "3f2a1b" in name
            said = index_of(stage, name).data(Qt.ItemDataRole.AccessibleTextRole)
            assert said.startswith(f"{name}, Queued")
            menu_of(stage, name)["Park now"].trigger()
            assert stage.engine.commands[-1] == ParkNow(request_id="chatcmpl-3f2a1b9c")
            priorities = menu_of(stage, name)["Priority"].menu()
            lanes = {action.text(): action for action in priorities.actions()}
            assert [text for text, action in lanes.items() if action.isChecked()] == ["Normal"]
            lanes["In the background"].trigger()
            background = SetPriority(request_id="chatcmpl-3f2a1b9c", priority=Priority.BACKGROUND)
            assert stage.engine.commands[-1] == background
            click(stage, name)
            assert stage.window.commands[CommandId.POOL].isChecked()
            stage.engine.publish()
            await until(lambda: "Programs" not in rows_in(stage))

    play(story())


def test_a_temporary_chat_says_so_and_is_gone_afterwards(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.commands[CommandId.NEW_TEMPORARY].trigger()
            await until(lambda: stage.window.panes.active.chat.is_temporary)
            said = index_of(stage, "New chat").data(Qt.ItemDataRole.AccessibleTextRole)
            assert "not saved" in said
            body = stage.window.panes.active.start_view.findChild(QLabel, "body")
            assert body.text().startswith("Nothing of this chat is saved")
            await stage.window.panes.show_chat(await stage.chats.new_chat())
            assert body.text().startswith("Several chats can run")
        async with open_stage(tmp_path) as stage:
            assert [chat.title for chat in stage.chats.chats] == ["A"]

    play(story())


def test_many_chats_come_page_by_page(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_list_model, "PAGE_ROWS", 12)

    async def story() -> None:
        async with open_stage(tmp_path, titles=tuple(f"Chat {n}" for n in range(40))) as stage:
            rows = list_of(stage)
            stage.window.findChild(SearchField).setText("chat")
            assert rows.model().rowCount() == 12
            rows.model().fetchMore(QModelIndex())
            assert rows.model().rowCount() == 24
            oldest = stage.chats.chats[-1]
            stage.window.findChild(Sidebar).edit_title(oldest)
            assert rows.currentIndex().data(RowRole.ROW).chat is oldest

    play(story())


@pytest.mark.parametrize("way", ["all", "to the end"])
def test_what_is_selected_to_the_end_is_all_of_the_list_and_not_what_was_scrolled_to(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(chat_list_model, "PAGE_ROWS", 12)

    async def story() -> None:
        names = (*(f"Chat {n}" for n in range(40)), *(f"Other {n}" for n in range(3)))
        async with open_stage(tmp_path, titles=names) as stage:
            rows = list_of(stage)
            stage.window.findChild(SearchField).setText("chat")
            rows.setFocus()
            await until(rows.hasFocus)
            if way == "all":
                QTest.keyClick(rows, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
            else:
                rows.go_to(rows.model().index(1, 0))
                QTest.keyClick(rows, Qt.Key.Key_End, Qt.KeyboardModifier.ShiftModifier)
            assert len(rows.selected_chats()) == 40
            QTest.keyClick(rows, Qt.Key.Key_Delete)
            await until(lambda: len(stage.chats.chats) == 3)
            bar = stage.window.findChild(UndoBar)
            await until(lambda: bar.accessibleName() == "40 chats deleted")
            bar.take_back()
            await until(lambda: len(stage.chats.chats) == 43)
            assert [chat.title for chat in stage.chats.chats] == list(reversed(names))

    play(story())


def test_a_name_is_found_by_its_letters_below_what_was_scrolled_to(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_list_model, "PAGE_ROWS", 12)

    async def story() -> None:
        names = ("Zebra", *(f"Chat {n}" for n in range(40)))
        async with open_stage(tmp_path, titles=names) as stage:
            rows = list_of(stage)
            rows.setFocus()
            await until(rows.hasFocus)
            QTest.keyClicks(rows, "ze")
            assert rows.currentIndex().data() == "Zebra"

    play(story())


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
@pytest.mark.parametrize("way", ["pane", "own window"])
def test_what_was_looked_for_is_marked_in_the_chat_and_stepped_through(
    play: Play, tmp_path: Path, way: str
) -> None:
    def marked(pane: ChatPane) -> list[str]:
        views = (row.view for _, row in pane.transcript.rows.places)
        edits = [view.text_edit for view in views if view is not None and view.text_edit]
        return [one.cursor.selectedText() for edit in edits for one in edit.extraSelections()]

    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            top, chat = stage.chats.chats
            for prompt, reply in (
                ("A needle in the Café?", "One needle."),
                ("And now?", "In the café of the hay: a Needle and a needle."),
                ("Thanks", "Nothing."),
            ):
                request_id = await stage.ask(chat, prompt)
                stage.engine.start(request_id)
                stage.engine.say(request_id, reply)
                stage.engine.finish(request_id)
                await until(lambda: chat.running_message is None)
            pane = stage.window.panes.active
            if way == "own window":
                stage.window.chat_commands.windows.open(chat)
                window = stage.window.chat_commands.windows.windows[chat]
                pane = window.pane
                await until(lambda: pane.transcript is not None)
            await stage.window.panes.show_chat(top)
            field = stage.window.findChild(SearchField)
            QTest.keyClicks(field, "needle cafe")
            await until(lambda: "In messages" in rows_in(stage))
            QTest.keyClick(field, Qt.Key.Key_Return)
            await until(lambda: pane.chat is chat and pane.find_bar.isVisible())
            bar = pane.find_bar
            assert bar.field.text() == "needle cafe"
            assert bar.words() == "4 of 6"  # the first of the message that was found
            await stage.settle()
            expected = ["needle", "Café", "needle", "café", "Needle", "needle"]
            await until(lambda: marked(pane) == expected)
            assert not bar.field.hasFocus()
            bar.next.click()
            assert bar.words() == "5 of 6"
            bar.previous.click()
            bar.previous.click()
            assert bar.words() == "3 of 6"
            bar.field.setText("hay")
            await until(lambda: bar.words() == "1 of 1")
            assert marked(pane) == ["hay"]

    play(story())


def test_a_chat_whose_name_alone_has_it_is_shown_without_marks(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Needle", "B")) as stage:
            chat = stage.chats.chats[1]
            stage.engine.finish(await stage.ask(chat, "Hello?"))
            await stage.window.panes.show_chat(stage.chats.chats[1])
            QTest.keyClicks(stage.window.findChild(SearchField), "needle")
            QTest.keyClick(stage.window.findChild(SearchField), Qt.Key.Key_Return)
            await until(lambda: stage.window.panes.active.chat is chat)
            assert stage.window.panes.active.find_bar.isHidden()

    play(story())


def test_chats_in_a_closed_folder_are_selected_with_it_and_one_folder_alone_keeps_its_chats(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C", "D")) as stage:
            folders, chats = stage.chats.folders, tuple(stage.chats.chats)
            outer = await folders.new("Outer")
            inner = await folders.new("Inner", parent_id=outer.folder_id)
            stage.chats.shelf.move(chats[:1], outer.folder_id)
            stage.chats.shelf.move(chats[1:2], inner.folder_id)
            await folders.set_open(outer, is_open=False)
            await until(lambda: rows_in(stage) == ["Folders", "Outer", "Today", "B", "A"])
            rows = list_of(stage)
            rows.setFocus()
            await until(rows.hasFocus)
            rows.go_to(index_of(stage, "Outer"))
            assert rows.selected_chats() == []
            QTest.keyClick(rows, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
            assert len(rows.selected_chats()) == 4
            QTest.keyClick(rows, Qt.Key.Key_Delete)
            bar = stage.window.findChild(UndoBar)
            await until(lambda: bar.accessibleName() == "4 chats deleted")
            bar.take_back()
            await until(lambda: set(chats) <= set(stage.chats.chats))
            assert {chat.folder_id for chat in chats} == {outer.folder_id, inner.folder_id, None}

    play(story())
