"""S11 and S16 in the real window on the real engine: what never fits is asked about, and what is alike is read once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QScrollArea

from engine.api import SamplingParams
from fakes.at_once import NEVER_ENDS
from fakes.chat_rig import until
from fakes.real_window import RealWindow, open_real
from fakes.shots import head, shoot
from fakes.tiny_files import write_tiny_gguf
from studio.models.chat import MessageStatus
from studio.models.chat_settings import ChatSettings
from studio.views.actions import CommandId
from studio.views.compare.compare_bar import CompareBar
from studio.views.compare.compare_dialog import CompareDialog
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
SAMPLING = SamplingParams(temperature=0.8, seed=3, logit_bias=NEVER_ENDS)
ENDLESS = ChatSettings(sampling=SAMPLING)
PROMPT = (
    "Why is the sky blue, and why is it red in the evening? Say it in one sentence for a child."
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny_gguf(tmp_path / "model")


def words_of(real: RealWindow) -> str:
    panel = real.pane.sending.overflow
    shown = [one for one in panel.findChildren(QLabel) if one.isVisible()]
    shown += [one for one in panel.findChildren(QPushButton) if one.isVisible()]
    return "\n".join(one.text() for one in shown)


def test_s11_what_never_fits_is_asked_about_and_harms_nobody(
    play: Play, tmp_path: Path, model: Path
) -> None:
    async def story() -> None:
        async with open_real(tmp_path / "home", engine__ctx_size=256) as real:
            assert await real.services.models.load(str(model))
            await real.new_chat(replace(ENDLESS, max_tokens=100))
            real.gate.shut_at(1, 20)
            other = await real.send("Lisbon")
            await until(lambda: real.gate.is_shut)

            chat = await real.new_chat(ENDLESS)
            panel = real.pane.sending.overflow
            real.pane.composer.set_text("word " * 400)
            real.press_return()
            await until(panel.isVisible)
            assert head("This would be {tokens}; the model reads {window} at once.") in words_of(
                real
            )
            assert tr("The message alone is too long; shorten it.") in words_of(real)
            await real.shoot("s11-message-too-long")
            assert panel.area.findChild(QScrollArea).size() == panel.area.size()
            panel.cancel.click()
            assert real.pane.composer.text().startswith("word word")
            assert (chat.messages, other.status) == ([], MessageStatus.WRITING)

            real.gate.open()
            await until(lambda: not other.status.is_alive)
            assert other.status is MessageStatus.LENGTH
            real.pane.composer.set_text("")
            grown = await real.send("Tell me everything")
            await until(lambda: not grown.status.is_alive)
            assert grown.status is MessageStatus.LENGTH, "it has filled the window"
            await real.shoot("s11-grown-to-the-limit")
            real.type("And then?")
            real.press_return()
            await until(panel.isVisible)
            assert head("Leave out the oldest {number} messages and send {tokens}") in words_of(
                real
            )
            assert tr("Sum them up first") in words_of(real)
            assert head("Make room for {tokens} and load again") in words_of(real)
            await real.shoot("s11-choices")
            assert len(chat.messages) == 2
            panel.leave_out.click()
            await until(lambda: chat.running_message is not None)
            await until(lambda: chat.running_message is None)
            assert chat.messages[-1].status is MessageStatus.LENGTH
            assert len(chat.messages) == 4
            assert not real.services.notices.notices.notices

    play(story())


def test_s16_columns_that_differ_in_sampling_only_read_the_prompt_once(
    play: Play, tmp_path: Path, model: Path
) -> None:
    verse = ChatSettings(system_prompt="Answer in verse.", sampling=SAMPLING, max_tokens=120)

    async def story() -> None:
        async with open_real(tmp_path / "home", engine__ctx_size=2048) as real:
            assert await real.services.models.load(str(model))
            chats, panes = real.services.chats, real.window.panes
            chat = await real.new_chat(verse)
            await chats.presets.save_as(chat, "Verse")
            chats.presets.set_settings(chat, replace(verse, system_prompt=""))
            real.window.commands[CommandId.POOL].trigger()
            real.window.commands[CommandId.COMPARE].trigger()
            dialog = real.window.findChildren(CompareDialog)[-1]
            QTest.keyClicks(dialog.prompt, PROMPT)
            dialog.add_column()
            dialog.add_column()
            dialog.columns[3].source.setCurrentIndex(2)
            dialog.columns[3].source.activated.emit(2)
            await until(lambda: all(one.isVisible() for one in dialog.columns))
            shoot(dialog, "s16-question")
            real.gate.shut_at(1, 1)
            press(dialog, tr("Compare"))
            await until(lambda: real.gate.is_shut)
            columns = chats.comparing.current.columns
            await until(lambda: all(column.running_message for column in columns))
            await real.run_until(4, 40)
            await real.shoot("s16-columns")
            real.gate.open()
            replies = [column.messages[-1] for column in columns]
            await until(lambda: not any(one.status.is_alive for one in replies))
            assert {one.status for one in replies} == {MessageStatus.LENGTH}
            known = [one.stats.cached_tokens for one in replies]
            assert known[0] == known[3] == 0
            assert known[1] == known[2] >= 64, "they read on where the first one had read"
            assert all(one.stats.completion_tokens == 120 for one in replies)
            await real.shoot("s16-ended")
            real.window.findChild(CompareBar).buttons[1].click()
            await until(lambda: len(panes.panes) == 1 and len(chats.chats) == 2)
            assert real.pane.chat is columns[1]
            await real.shoot("s16-picked")

    play(story())


def press(dialog: CompareDialog, text: str) -> None:
    next(one for one in dialog.findChildren(QPushButton) if one.text() == text).click()
