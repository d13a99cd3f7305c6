"""S2 and S3 on the starter model: four chats that do not fit together all end; who is left alone goes on."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.api import SamplingParams
from fakes.at_once import NEVER_ENDS
from fakes.chat_rig import until
from fakes.real_window import open_real
from fakes.shots import head, shoot
from studio.models.chat import MessageStatus, reply_request_id
from studio.models.chat_settings import ChatSettings
from studio.models.notices import NoticeLevel
from studio.views.actions import CommandId
from studio.views.chat.chat_view import ChatView, Place
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]

POOL_TOKENS = 512
PROMPTS = (
    "Tell me a story about a ship that is lost in the fog.",
    "List twenty animals and say where each of them lives.",
    "Describe the four seasons in the mountains.",
    "Explain how bread is baked, step by step.",
)
SETTINGS = ChatSettings(
    sampling=SamplingParams(temperature=0.0, logit_bias=NEVER_ENDS), max_tokens=160
)
"""Every reply is of that length, whatever this machine's kernels make of it."""


def test_s2_four_chats_that_overflow_the_pool_end_as_each_would_alone(
    play: Play, tmp_path: Path, starter_model: Path
) -> None:
    async def story() -> None:
        flags = {"engine__ctx_size": POOL_TOKENS, "engine__parallel": 4}
        async with open_real(tmp_path, **flags) as real:
            assert await real.services.models.load(str(starter_model))
            real.window.commands[CommandId.POOL].trigger()
            replies = await real.send_at_once(SETTINGS, PROMPTS)
            await real.run_until(3, 100)
            await until(lambda: any(one.status is MessageStatus.PARKED for one in replies))
            parked = [one for one in replies if one.status is MessageStatus.PARKED]
            await real.window.panes.show_chat(real.chat_of(parked[0]))
            await real.shoot("s2-parked")
            row = real.window.pool_panel.rows[reply_request_id(parked[0])]
            words = row.accessibleName()
            assert tr("Parked") in words
            room = tr("There is room now, but the others will soon grow into it")
            assert head("Needs room for {needed}") in words or room in words
            real.gate.open()
            await until(lambda: not any(one.status.is_alive for one in replies))
            assert {one.status for one in replies} == {MessageStatus.LENGTH}
            assert any(one.stats.parked_s > 0 for one in replies)
            told = real.services.notices.notices.notices
            assert not [one for one in told if one.level is not NoticeLevel.INFO]
            await real.shoot("s2-all-ended")
            for prompt, together in zip(PROMPTS, replies, strict=True):
                await real.new_chat(SETTINGS)
                alone = await real.send(prompt)
                await until(lambda alone=alone: not alone.status.is_alive)
                assert alone.text == together.text

    play(story())


def offset_of(transcript: ChatView, place: Place) -> int:
    """Where the row stands on screen that the reader was at, also where no more than its margin is seen."""
    section = transcript.rows.section_of(place.message_id)
    assert section is not None
    return section.top + section.rows[place.row].top - transcript.verticalScrollBar().value()


def test_s3_a_chat_that_is_left_goes_on_and_is_found_as_it_was(
    play: Play, tmp_path: Path, starter_model: Path
) -> None:
    async def story() -> None:
        async with open_real(tmp_path, engine__ctx_size=2048) as real:
            assert await real.services.models.load(str(starter_model))
            panes, long = real.window.panes, replace(SETTINGS, max_tokens=1800)
            first = await real.new_chat(long)
            num_tokens = 460 + round(0.68 * max(0, real.window.height() - 800))
            real.gate.shut_at(1, num_tokens)  # more than there is room for
            reply = await real.send(PROMPTS[0])
            await until(lambda: real.gate.is_shut)
            real.type("half a thou")
            await real.settle()
            bar = real.pane.transcript.verticalScrollBar()
            bar.setValue(bar.maximum() // 3)
            await real.settle()
            left_at, left_with = real.pane.transcript.place, reply.text
            assert left_at is not None
            second, third = (
                await real.services.chats.new_chat(),
                await real.services.chats.new_chat(),
            )
            for chat in (second, third):
                await panes.show_chat(chat)
                assert real.pane.composer.text() == ""
            real.window.commands[CommandId.SETTINGS].trigger()
            await real.run_until(1, 100)
            shoot(real.window.settings_window.dialog, "s3-settings")
            await real.shoot("s3-elsewhere")
            await until(lambda: len(reply.text) > len(left_with))
            assert reply.status is MessageStatus.WRITING
            real.window.settings_window.close()
            await panes.show_chat(first)
            await real.settle()
            assert offset_of(real.pane.transcript, left_at) == left_at.offset
            assert real.pane.composer.text() == "half a thou"
            await real.shoot("s3-back")
            real.window.commands[CommandId.STOP].trigger()
            assert reply.status is MessageStatus.STOPPED, "at once, whatever the engine does"
            real.gate.open()
            await until(lambda: not real.services.runs.snapshot().runs)
            assert reply.text.startswith(left_with)

    play(story())
