"""A model is loaded while replies run only after a question that names them; settings say what waits for a load."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QLabel

from engine.runs import RunState
from fakes.fake_engine import TINY_MODEL
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.shots import shoot
from studio.services.reload_service import ReloadChoice
from studio.views.dialogs.reload_dialog import ReloadDialog
from studio.views.settings.pending_bar import PendingBar
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]


def said(dialog: ReloadDialog) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel) if label.isVisible())


async def two_running(stage: Stage) -> tuple[str, str]:
    first, second = [await stage.ask(chat, "Hello?") for chat in stage.chats.chats[:2]]
    stage.engine.start(first)
    stage.engine.publish(
        make_run(first), make_run(second, RunState.PARKED, wait=make_wait()), make_run("chatcmpl-7")
    )
    return first, second


async def asked(stage: Stage, name: str) -> ReloadDialog:
    await stage.window.reload_flow.load(name)
    dialog = stage.window.reload_flow.dialog
    assert dialog is not None
    return dialog


def loads(stage: Stage) -> list[tuple[str, str]]:
    return [one for one in stage.models.asked if one[0] in ("load", "carry on", "unload")]


def test_with_nobody_running_nothing_is_asked(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.window.context.model_actions.load("other")
            await until(lambda: loads(stage) == [("load", "other")])
            assert stage.window.reload_flow.dialog is None
            stage.window.context.model_actions.unload()
            await until(lambda: loads(stage)[-1][0] == "unload")

    play(story())


def test_the_question_names_everybody_and_park_carries_them_on(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            await two_running(stage)
            dialog = await asked(stage, str(TINY_MODEL.path))
            words = said(dialog)
            assert tr("Load the model again while replies run?") in words
            for name in ("Children", "Lisbon (", f"{tr('API request')} 7"):
                assert name in words
            assert loads(stage) == []
            shoot(dialog, "s9-question")
            for label in dialog.findChildren(QLabel):
                if label.isVisible():
                    assert label.height() >= label.heightForWidth(label.width()), label.text()
            dialog.buttons[ReloadChoice.PARK].click()
            await until(lambda: loads(stage) == [("carry on", str(TINY_MODEL.path))])
            assert stage.window.reload_flow.dialog is None

    play(story())


def test_another_model_says_that_text_is_kept_and_stop_stops(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            first, second = await two_running(stage)
            dialog = await asked(stage, "other")
            assert "Interrupt them" in dialog.buttons[ReloadChoice.PARK].text()
            assert "Requests of programs end with an error." in said(dialog)
            dialog.buttons[ReloadChoice.STOP].click()
            await until(lambda: loads(stage) == [("load", "other")])
            await until(lambda: {first, second, "chatcmpl-7"} <= {*stage.engine.aborted})

    play(story())


def test_waiting_stays_on_screen_and_loads_when_the_last_has_ended(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            first, second = await two_running(stage)
            dialog = await asked(stage, "other")
            dialog.buttons[ReloadChoice.WAIT].click()
            await until(lambda: "once these have ended" in said(dialog))
            assert not dialog.buttons[ReloadChoice.WAIT].isVisible()
            stage.engine.publish(make_run(second))
            stage.engine.finish(first)
            await until(lambda: "Children" not in said(dialog))
            assert loads(stage) == []
            stage.engine.publish()
            stage.engine.finish(second)
            await until(lambda: loads(stage) == [("load", "other")])
            await until(lambda: stage.window.reload_flow.dialog is None)

    play(story())


def test_closing_the_question_gives_the_wait_up(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            await two_running(stage)
            dialog = await asked(stage, "other")
            dialog.buttons[ReloadChoice.WAIT].click()
            await until(lambda: stage.services.reloads.waits_for is not None)
            dialog.reject()
            assert stage.services.reloads.waits_for is None
            assert loads(stage) == []

    play(story())


def test_the_settings_say_what_waits_for_a_load_and_offer_it(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.services.settings.change("engine.ctx_size", 2048)  # as the pretended model has it
            stage.window.settings_window.open()
            bar = stage.window.settings_window.dialog.findChild(PendingBar)
            assert bar.isHidden()
            stage.services.settings.change("engine.parallel", 7)
            assert not bar.isHidden()
            assert "Requests at once" in bar.findChild(QLabel).text()
            bar.button.click()
            await until(lambda: loads(stage) == [("carry on", str(TINY_MODEL.path))])
            stage.services.settings.change("engine.parallel", 4)
            assert bar.isHidden()

    play(story())
