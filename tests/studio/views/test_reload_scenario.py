"""S9 in the real window: another pool size while three replies run and a fourth is parked; all four go on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from engine.api import EngineState, SamplingParams
from fakes.at_once import NEVER_ENDS
from fakes.chat_rig import until
from fakes.real_window import RealWindow, open_real
from fakes.shots import shoot
from fakes.tiny_files import write_tiny_gguf
from studio.models.chat import Message, MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.services.reload_service import ReloadChoice
from studio.services.run_service import Steer
from studio.views.chat.foot_view import MessageAction
from studio.views.dialogs.reload_dialog import ReloadDialog
from studio.views.settings.pending_bar import PendingBar

Play = Callable[[Coroutine[Any, Any, None]], None]
PROMPTS = ("Lisbon", "Children", "Recipes", "Garden")
SETTINGS = ChatSettings(
    sampling=SamplingParams(temperature=0.8, seed=3, logit_bias=NEVER_ENDS), max_tokens=300
)
FLAGS = {"engine__parallel": 4, "engine__threads": 1}


async def three_and_a_parked_one(real: RealWindow, model: Path) -> list[Message]:
    assert await real.services.models.load(str(model))
    replies = await real.send_at_once(SETTINGS, PROMPTS)
    await real.run_until(4, 30)
    real.services.runs.steer_chat(real.chat_of(replies[3]), Steer.PARK)
    await real.run_until(3, 10)
    await until(lambda: replies[3].status is MessageStatus.PARKED)
    return replies


async def ask_to_load_again(real: RealWindow) -> ReloadDialog:
    """Through the settings: another size of the pool, then the button that loads."""
    real.window.settings_window.open()
    real.services.settings.change("engine.ctx_size", 4096)
    dialog = real.window.settings_window.dialog
    assert dialog is not None
    bar = dialog.findChild(PendingBar)
    assert bar.isVisible()
    shoot(dialog, "s9-settings")
    bar.button.click()
    await until(lambda: real.window.reload_flow.dialog is not None)
    question = real.window.reload_flow.dialog
    assert question is not None
    return question


def test_s9_all_four_go_on_after_the_load_with_the_text_of_an_undisturbed_run(
    play: Play, tmp_path: Path
) -> None:
    model = write_tiny_gguf(tmp_path / "model")
    alone: list[str] = []

    async def undisturbed() -> None:
        async with open_real(tmp_path / "alone", **FLAGS) as real:
            assert await real.services.models.load(str(model))
            for prompt in PROMPTS:
                await real.new_chat(SETTINGS)
                reply = await real.send(prompt)
                await until(lambda reply=reply: not reply.status.is_alive)
                alone.append(reply.text)

    async def story() -> None:
        async with open_real(tmp_path / "home", **FLAGS) as real:
            real.services.settings.change("engine.ctx_size", 2048)
            replies = await three_and_a_parked_one(real, model)
            question = await ask_to_load_again(real)
            await real.shoot("s9-before")
            shoot(question, "s9-question-real")
            models = real.services.models
            question.buttons[ReloadChoice.PARK].click()
            await until(lambda: models.state is EngineState.LOADING)
            await real.shoot("s9-loading")
            real.gate.open()
            await until(lambda: models.state is EngineState.READY and real.run(replies[3]))
            real.services.runs.steer_chat(real.chat_of(replies[3]), Steer.GO_FIRST)
            await until(lambda: not any(one.status.is_alive for one in replies))
            await real.shoot("s9-after")
            assert [one.status for one in replies] == [MessageStatus.LENGTH] * 4
            assert [one.text for one in replies] == alone
            assert real.services.reloads.pending() == ()

    play(undisturbed())
    play(story())


def test_s9_another_model_keeps_the_text_and_offers_to_continue(play: Play, tmp_path: Path) -> None:
    model, other = (write_tiny_gguf(tmp_path / str(seed), seed=seed) for seed in (0, 5))

    async def story() -> None:
        async with open_real(tmp_path / "home", **FLAGS, engine__ctx_size=2048) as real:
            replies = await three_and_a_parked_one(real, model)
            texts = [one.text for one in replies]
            real.window.context.model_actions.load(str(other))
            await until(lambda: real.window.reload_flow.dialog is not None)
            question = real.window.reload_flow.dialog
            shoot(question, "s9-other-model")
            question.buttons[ReloadChoice.PARK].click()
            models = real.services.models
            await until(lambda: models.state is EngineState.LOADING)  # or they end before it
            real.gate.open()
            await until(lambda: not any(one.status.is_alive for one in replies))
            assert {one.status for one in replies} == {MessageStatus.INTERRUPTED}
            assert all(one.text.startswith(text) for one, text in zip(replies, texts, strict=True))
            await until(lambda: models.state is EngineState.READY and models.model.path == other)
            foot = real.pane.transcript.foot_of(real.pane.chat.messages[-1])
            foot.make_buttons()
            assert foot.buttons[MessageAction.CONTINUE].isEnabled()
            assert not foot.buttons[MessageAction.CONTINUE].isHidden()
            await real.shoot("s9-interrupted")

    play(story())
