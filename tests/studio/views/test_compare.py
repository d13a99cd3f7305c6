"""Comparing in the window: a dialog, columns side by side, and a bar to go on with one of them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QRect, Qt
from PySide6.QtGui import QScreen
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QScrollArea

from engine.api import EngineState
from fakes.fake_window import Stage, open_stage, until
from studio.models.chat_settings import ChatSettings
from studio.views.actions import CommandId
from studio.views.compare.compare_bar import CompareBar, difference
from studio.views.compare.compare_dialog import CompareDialog

Play = Callable[[Coroutine[Any, Any, None]], None]


def asked(stage: Stage) -> CompareDialog:
    stage.window.commands[CommandId.COMPARE].trigger()
    return stage.window.findChildren(CompareDialog)[-1]


def button(dialog: CompareDialog, text: str) -> QPushButton:
    return next(one for one in dialog.findChildren(QPushButton) if one.text() == text)


def test_a_prompt_runs_in_columns_and_one_is_gone_on_with(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            chat, panes = stage.chats.chats[0], stage.window.panes
            stage.chats.presets.set_settings(chat, ChatSettings(system_prompt="Be brief."))
            dialog = asked(stage)
            assert not button(dialog, "Compare").isEnabled()
            QTest.keyClicks(dialog.prompt, "Why is the sky blue?")
            button(dialog, "Add a column").click()
            dialog.columns[1].source.setCurrentIndex(1)
            dialog.columns[1].source.activated.emit(1)
            dialog.columns[2].temperature.setValue(1.5)
            button(dialog, "Compare").click()
            await until(lambda: len(panes.panes) == 3 and len(stage.engine.requests) == 2)
            first, default = stage.engine.requests.values()
            assert (first.sampling.temperature, default.sampling.temperature) == (0.0, 0.8)
            stage.engine.start(first.request_id)
            stage.engine.say(first.request_id, "Light")
            await until(lambda: len(stage.engine.requests) == 3)
            bar = stage.window.findChild(CompareBar)
            assert bar.isVisible()
            assert [one.text() for one in bar.buttons] == [
                "1: temperature 0",
                "2: temperature 0.8 · other system prompt",
                "3: temperature 1.5",
            ]
            bar.buttons[0].click()
            await until(lambda: len(panes.panes) == 1)
            assert panes.active.chat.messages[0].text == "Why is the sky blue?"
            assert panes.active.chat.title == "A (2)"
            assert bar.isHidden()
            assert len(stage.chats.chats) == 2

    play(story())


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter])
def test_ctrl_and_enter_compare_from_the_prompt(play: Play, tmp_path: Path, key: Qt.Key) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            dialog = asked(stage)
            dialog.activateWindow()
            dialog.prompt.setFocus()
            await until(dialog.prompt.hasFocus)
            QTest.keyClick(dialog.prompt, key, Qt.KeyboardModifier.ControlModifier)
            assert dialog.isVisible(), "nothing is asked yet"
            QTest.keyClicks(dialog.prompt, "Hello?")
            QTest.keyClick(dialog.prompt, key, Qt.KeyboardModifier.ControlModifier)
            await until(lambda: stage.engine.requests)

    play(story())


def test_columns_without_room_for_their_buttons_are_in_a_menu(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            dialog = asked(stage)
            QTest.keyClicks(dialog.prompt, "Hello?")
            button(dialog, "Compare").click()
            bar = stage.window.findChild(CompareBar)
            await until(lambda: bar.isVisible() and stage.engine.requests)

            def offered(width: int) -> tuple[bool, bool]:
                bar.setFixedWidth(width)
                QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)
                shown = {one.isVisible() for one in bar.buttons}
                assert len(shown) == 1
                return shown.pop(), bar.choose.isVisible()

            assert offered(900) == (True, False)
            assert offered(bar.minimumSizeHint().width()) == (False, True)
            assert offered(900) == (True, False)
            actions = bar.choose.menu().actions()
            assert [one.text() for one in actions] == [one.text() for one in bar.buttons]
            actions[1].trigger()
            await until(lambda: len(stage.window.panes.panes) == 1)
            assert stage.window.panes.active.chat.settings.sampling.temperature == 0.8

    play(story())


def test_four_columns_have_room_because_the_side_bar_makes_it(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.resize(1400, 800)
            dialog = asked(stage)
            QTest.keyClicks(dialog.prompt, "Hello?")
            for _ in range(5):
                dialog.add_column()
            assert len(dialog.columns) == 4
            button(dialog, "Compare").click()
            await until(lambda: len(stage.window.panes.panes) == 4)
            await until(lambda: stage.engine.requests)

    play(story())


def test_a_column_can_be_removed_but_two_stay(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            dialog = asked(stage)
            dialog.add_column()
            dialog.columns[0].removed.emit()
            assert [one.source.accessibleName() for one in dialog.columns] == [
                "Settings of column 1",
                "Settings of column 2",
            ]
            button(dialog, "Cancel").click()

    play(story())


def test_a_column_may_have_a_system_prompt_of_its_own_and_who_reads_alone_is_said(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            chat = stage.chats.chats[0]
            stage.chats.presets.set_settings(chat, ChatSettings(system_prompt="Be brief."))
            dialog = asked(stage)
            dialog.add_column()
            assert dialog.shares.text() == "What the columns have in common is read once."
            column = dialog.columns[2]
            assert column.system_prompt.isHidden()
            column.source.setCurrentIndex(column.source.count() - 1)
            column.source.activated.emit(column.source.count() - 1)
            assert not column.system_prompt.isHidden()
            assert column.system_prompt.toPlainText() == "Be brief."
            column.system_prompt.setPlainText("Answer in verse.")
            apart = (
                "Columns 1 and 2 share what they read. "
                "Column 3 has another system prompt and reads for itself."
            )
            assert dialog.shares.text() == apart
            QTest.keyClicks(dialog.prompt, "Hello?")
            button(dialog, "Compare").click()
            await until(lambda: len(stage.engine.requests) == 2)
            systems = [one.prompt.messages[0].content for one in stage.engine.requests.values()]
            assert systems == ["Be brief.", "Answer in verse."]
            bar = stage.window.findChild(CompareBar)
            assert bar.buttons[2].text() == "3: temperature 1.2 · other system prompt"
            assert bar.buttons[2].toolTip() == "Answer in verse."

    play(story())


def test_four_columns_with_prompts_of_their_own_scroll_on_a_low_screen(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            dialog = asked(stage)
            for _ in range(2):
                dialog.add_column()
            for column in dialog.columns:
                column.source.setCurrentIndex(column.source.count() - 1)
                column.source.activated.emit(column.source.count() - 1)
            await until(dialog.columns[3].system_prompt.isVisible)
            (area,) = dialog.findChildren(QScrollArea)
            await until(lambda: not area.verticalScrollBar().maximum())
            roomy_px = dialog.prompt.height()
            dialog.close()
            room = QRect(0, 0, 640, 400)
            monkeypatch.setattr(QScreen, "availableGeometry", lambda _screen: room)
            dialog = asked(stage)
            for _ in range(2):
                dialog.add_column()
            await until(lambda: all(one.isVisible() for one in dialog.columns))
            for column in dialog.columns:
                column.source.setCurrentIndex(column.source.count() - 1)
                column.source.activated.emit(column.source.count() - 1)
            await until(dialog.columns[3].system_prompt.isVisible)
            assert dialog.height() < room.height()
            assert dialog.prompt.height() < roomy_px, "the columns need the room more"
            dialog.prompt.setPlainText("Why?\nHow?\nWhen?")
            await until(lambda: not dialog.prompt.verticalScrollBar().maximum())
            dialog.close()

    play(story())


def test_without_a_model_the_way_on_is_told(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            stage.window.commands[CommandId.COMPARE].trigger()
            codes = [notice.code for notice in stage.services.notices.notices.notices]
            assert codes == ["model_unavailable"]
            assert not stage.window.findChildren(CompareDialog)

    play(story())


def test_a_column_is_told_by_its_number_and_temperature() -> None:
    assert difference(2, ChatSettings(), "") == "2: temperature 0.8"
