"""Models in the window: the start screen and the menu say what the service says, and ask it for what is clicked."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QFileDialog,
    QLabel,
    QMenu,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
)

from engine.api import EngineState
from engine.errors import CorruptModel
from fakes.fake_window import ENTRY, Stage, open_stage, until
from studio.views.actions import CommandId
from studio.views.model_selector import ModelSelector
from studio.views.start_view import StartView

Play = Callable[[Coroutine[Any, Any, None]], None]


def screen(stage: Stage) -> StartView:
    return stage.window.panes.active.start_view


def heading(stage: Stage) -> str:
    return screen(stage).findChild(QLabel, "heading").text()


def offers(stage: Stage) -> list[str]:
    return [b.text() for b in screen(stage).findChildren(QPushButton) if not b.isHidden()]


def menu_of(stage: Stage) -> QMenu:
    selector = stage.window.findChild(ModelSelector)
    selector.click()
    return selector.menu_of_models


def test_the_start_screen_follows_a_fetch_and_a_load(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            assert heading(stage) == "First, a model"
            stage.models.say_fetching(46_500_000)
            await until(lambda: heading(stage) == "Getting the model")
            bar = screen(stage).findChild(QProgressBar)
            assert (bar.isHidden(), bar.value()) == (False, 500)
            screen(stage).findChildren(QPushButton)[-1].click()
            assert ("cancel_fetch", "") in stage.models.asked
            stage.models.say_fetching(None)
            stage.models.say(EngineState.LOADING, progress=0.25)
            await until(lambda: heading(stage) == "Loading tiny")
            assert offers(stage) == ["Cancel"]
            stage.models.say(EngineState.READY)
            await until(lambda: heading(stage) == "What is on your mind?")
            assert offers(stage) == []
            assert bar.isHidden()

    play(story())


def test_a_library_that_is_not_empty_is_offered_first(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            stage.models.entries = (ENTRY, replace(ENTRY, name="other"))
            stage.models.library_changed.emit()
            await until(lambda: heading(stage) == "Which model?")
            assert offers(stage) == ["Load tiny", "Load other", "Use a file I have…"]
            button = next(b for b in screen(stage).findChildren(QPushButton) if "other" in b.text())
            button.click()
            await until(lambda: ("load", "other") in stage.models.asked)

    play(story())


def test_a_model_that_did_not_load_says_why(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            stage.models.say(EngineState.FAILED, error=CorruptModel("tensor count is 0"))
            await until(lambda: heading(stage) == "The model did not load")
            assert screen(stage).findChild(QLabel, "body").text() == "Tensor count is 0."

    play(story())


def test_the_selector_says_which_model_or_how_far(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            selector = stage.window.findChild(ModelSelector)
            assert selector.accessibleName() == "Model: tiny"
            stage.models.say(EngineState.LOADING, progress=0.42)
            await until(lambda: selector.accessibleName() == "Model: Loading · 42%")
            stage.models.say(EngineState.NO_MODEL)
            await until(lambda: selector.accessibleName() == "Model: Choose a model")
            stage.models.say_fetching(93_000_000 // 4)
            await until(lambda: selector.accessibleName() == "Model: Getting a model · 25%")

    play(story())


def test_that_a_model_is_ready_is_told_to_a_screen_reader_once(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            monkeypatch.setattr(
                QAccessible, "updateAccessibility", lambda event: told.append(event.message())
            )
            for progress in (0.1, 0.9):
                stage.models.say(EngineState.LOADING, progress=progress)
                stage.window.findChild(ModelSelector).refresh()
            for _ in range(2):
                stage.models.say(EngineState.READY)
                stage.window.findChild(ModelSelector).refresh()

    play(story())
    assert told == ["tiny is ready"]


def test_the_menu_lists_the_library_and_the_catalogue(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.models.entries = (ENTRY, replace(ENTRY, name="gone", is_missing=True))
            menu = menu_of(stage)
            by_text = {action.text().split("   ")[0]: action for action in menu.actions()}
            assert by_text["tiny"].isChecked()
            assert not by_text["gone"].isEnabled()
            get = next(text for text in by_text if text.startswith("Get SmolLM2"))
            by_text["tiny"].trigger()
            by_text[get].trigger()
            by_text["Unload the model"].trigger()
            await until(lambda: len(stage.models.asked) >= 5)
            assert {("carry on", "tiny"), ("fetch", "smollm2-135m"), ("unload", "")} <= set(
                stage.models.asked
            )

    play(story())


def test_a_chosen_file_is_added_and_loaded(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            stage.window.commands[CommandId.USE_FILE].trigger()
            dialog = stage.window.findChild(QFileDialog)
            dialog.fileSelected.emit("/models/mine.gguf")
            dialog.reject()
            await until(lambda: ("load", "tiny") in stage.models.asked)
            assert ("add", "/models/mine.gguf") in stage.models.asked

    play(story())


def test_a_model_that_rests_is_said_to_and_a_message_is_sent_to_it(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            stage.models.is_resting = True
            stage.models.library_changed.emit()
            await until(lambda: heading(stage) == "The model rests")
            composer = stage.window.panes.active.composer
            composer.findChild(QPlainTextEdit).setPlainText("Wake up")
            composer.submitted.emit("Wake up")
            await until(lambda: stage.engine.requests)

    play(story())
