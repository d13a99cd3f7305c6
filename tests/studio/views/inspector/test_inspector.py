"""The inspector: what is changed there holds for the chat's next reply, and each chat has its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDoubleSpinBox

from engine.api import Chat, SamplingParams
from fakes.fake_window import Stage, open_stage, until
from studio.models.chat_settings import ChatSettings
from studio.views.actions import CommandId
from studio.views.inspector.inspector import Inspector
from studio.views.inspector.knob import Knob

Play = Callable[[Coroutine[Any, Any, None]], None]


def opened(stage: Stage) -> Inspector:
    stage.window.commands[CommandId.INSPECTOR].trigger()
    return stage.window.findChild(Inspector)


def knob(inspector: Inspector, title: str) -> Knob:
    return next(one for one in inspector.knobs if one.number.title == title)


def type_into(field: QDoubleSpinBox, text: str) -> None:
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


def menu(inspector: Inspector) -> dict[str, Any]:
    inspector.preset_bar.fill_menu()
    actions = inspector.preset_bar.menu_of_presets.actions()
    return {action.text(): action for action in actions if action.text()}


def test_everything_set_is_in_the_next_request(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            inspector, chat = opened(stage), stage.chats.chats[0]
            QTest.keyClicks(inspector.system_prompt, "Be brief.")
            type_into(knob(inspector, "Temperature").field, "0.2")
            type_into(knob(inspector, "Top-p").field, "0.5")
            type_into(knob(inspector, "Top-k").field, "7")
            type_into(knob(inspector, "Min-p").field, "0.1")
            type_into(knob(inspector, "Repeat penalty").field, "1.1")
            type_into(knob(inspector, "Most tokens of a reply").field, "99")
            QTest.keyClicks(inspector.seed, "x4y2")  # letters are not taken
            inspector.stop.setPlainText("END\n\\n\\n\nEND")
            request = stage.engine.requests[await stage.ask(chat, "Hello?")]
            assert request.sampling == SamplingParams(
                temperature=0.2, top_p=0.5, top_k=7, min_p=0.1, repetition_penalty=1.1, seed=42
            )
            assert (request.max_tokens, request.stop) == (99, ("END", "\n\n"))
            assert isinstance(request.prompt, Chat)
            assert request.prompt.messages[0].content == "Be brief."

    play(story())


def test_each_chat_shows_its_own_and_the_cursor_stays_while_one_types(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            inspector, (first, second) = opened(stage), stage.chats.chats
            QTest.keyClicks(inspector.system_prompt, "ab")
            inspector.system_prompt.moveCursor(
                inspector.system_prompt.textCursor().MoveOperation.Left
            )
            QTest.keyClicks(inspector.system_prompt, "X")
            assert first.settings.system_prompt == "aXb"
            await stage.window.panes.show_chat(second)
            assert inspector.system_prompt.toPlainText() == ""
            knob(inspector, "Temperature").slider.setValue(0)
            assert second.settings.sampling.temperature == 0.0
            await stage.window.panes.show_chat(first)
            assert inspector.system_prompt.toPlainText() == "aXb"
            assert knob(inspector, "Temperature").field.value() == 0.8
            assert first.settings.sampling == SamplingParams()

    play(story())


def test_what_differs_from_the_default_has_a_way_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            inspector, chat = opened(stage), stage.chats.chats[0]
            heat, most = (
                knob(inspector, "Temperature"),
                knob(inspector, "Most tokens of a reply"),
            )
            assert not inspector.reset.isEnabled()
            assert heat.back.isHidden()
            type_into(heat.field, "1.5")
            type_into(most.field, "64")
            assert not heat.back.isHidden()
            assert heat.back.accessibleName() == "Temperature: back to 0.80"
            heat.back.click()
            assert chat.settings == ChatSettings(max_tokens=64)
            inspector.reset.click()
            assert chat.settings == ChatSettings()
            assert most.field.text() == "off"

    play(story())


def test_presets_are_saved_taken_renamed_and_deleted_without_a_dialog(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            inspector, (first, second) = opened(stage), stage.chats.chats
            bar, presets = inspector.preset_bar, stage.chats.presets
            QTest.keyClicks(inspector.system_prompt, "Be brief.")
            assert bar.button.text() == "Default, changed"
            menu(inspector)["Save as a new preset…"].trigger()
            QTest.keyClicks(bar.name, "Terse")
            QTest.keyClick(bar.name, Qt.Key.Key_Return)
            await until(lambda: bar.button.text() == "Terse")
            await stage.window.panes.show_chat(second)
            assert bar.button.text() == "Default"
            menu(inspector)["Terse"].trigger()
            assert second.settings == first.settings
            QTest.keyClicks(inspector.system_prompt, "!")
            assert bar.button.text() == "Terse, changed"
            menu(inspector)["Save to “Terse”"].trigger()
            await until(lambda: bar.button.text() == "Terse")
            menu(inspector)["Rename…"].trigger()
            assert bar.name.text() == "Terse"
            QTest.keyClicks(bar.name, "Exact")
            QTest.keyClick(bar.name, Qt.Key.Key_Return)
            await until(lambda: [one.name for one in presets.presets] == ["Exact"])
            menu(inspector)["Save as a new preset…"].trigger()
            QTest.keyClick(bar.name, Qt.Key.Key_Escape)
            assert bar.name.isHidden()
            menu(inspector)["Delete the preset"].trigger()
            await until(lambda: not presets.presets)
            assert "Be brief." in second.settings.system_prompt
            assert bar.button.text() == "Default, changed"

    play(story())


def test_it_opens_with_the_keyboard_in_it_and_gives_it_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.activateWindow()
            inspector = opened(stage)
            assert inspector.isVisible()
            await until(lambda: QApplication.focusWidget() is inspector.preset_bar.button)
            stage.window.commands[CommandId.INSPECTOR].trigger()
            assert not inspector.isVisible()
            field = stage.window.panes.active.composer
            await until(lambda: field.isAncestorOf(QApplication.focusWidget()))

    play(story())


@pytest.mark.parametrize("seed", ["0", "18446744073709551615", "99999999999999999999"])
def test_a_seed_of_any_size_is_taken_and_kept_in_bounds(
    play: Play, tmp_path: Path, seed: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            inspector, chat = opened(stage), stage.chats.chats[0]
            QTest.keyClicks(inspector.seed, seed)
            assert chat.settings.sampling.seed == min(int(seed), (1 << 64) - 1)
            inspector.seed.selectAll()
            QTest.keyClick(inspector.seed, Qt.Key.Key_Delete)
            assert chat.settings.sampling.seed is None

    play(story())
