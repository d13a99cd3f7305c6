"""S15 on the starter model and a real tool server: who waits for an answer lends its room out and comes back first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.api import Chat, EngineEvent, Request, SamplingParams, Started, ToolChoice
from engine.runs import RunState, WaitKind
from engine.runtime.engine import Engine
from fakes.at_once import NEVER_ENDS
from fakes.chat_rig import until
from fakes.real_window import RealWindow, open_real
from fakes.tools import stdio_server
from studio.models.chat import Conversation, Message, MessageStatus, reply_request_id
from studio.models.chat_settings import ChatSettings
from studio.models.tool_servers import ToolServer
from studio.models.tool_use import ChatTools, ToolUseState
from studio.views.actions import CommandId
from studio.views.run_sentences import describe_row
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]

POOL_TOKENS = 768
CLOCK = ToolServer(
    name="clock",
    command=sys.executable,
    args=(str(Path(stdio_server.__file__)), "--noon"),
    is_on=True,
)
ASKS = ChatSettings(sampling=SamplingParams(temperature=0.0), max_tokens=60)
WRITES = ChatSettings(
    sampling=SamplingParams(temperature=0.0, logit_bias=NEVER_ENDS), max_tokens=220
)
PROMPTS = (
    "Tell me a story about a ship that is lost in the fog.",
    "List twenty animals and say where each of them lives.",
    "Describe the four seasons in the mountains.",
    "Explain how bread is baked, step by step.",
)


@pytest.fixture(autouse=True)
def _a_model_that_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The starter model is too small to call tools by itself: here it must, once, and then answer."""
    submit = Engine.submit

    def submit_forced(engine: Engine, request: Request) -> None:
        prompt = request.prompt
        if isinstance(prompt, Chat) and prompt.tools:
            has_called = any(turn.role == "tool" for turn in prompt.messages)
            forced = replace(prompt, tool_choice=ToolChoice.REQUIRED)
            # whatever it says then is an answer, after the same beginning
            request = replace(request, prompt=forced, tells_parts=not has_called)
        submit(engine, request)

    monkeypatch.setattr(Engine, "submit", submit_forced)


async def with_tools(
    real: RealWindow, *, always: tuple[tuple[str, str], ...] = ()
) -> tuple[Conversation, Message]:
    """A chat that has asked for the time; its reply, which calls the tool."""
    chat = await real.new_chat(ASKS)
    real.services.chats.set_tools(chat, ChatTools(servers=("clock",), always=always))
    reply = await real.send("What time is it? Ask the clock.")
    await until(lambda: reply.status not in (MessageStatus.QUEUED, MessageStatus.READING))
    await until(lambda: reply.status is not MessageStatus.WRITING)
    assert reply.calls, f"it ended as {reply.status}: {reply.text} {reply.note}"
    return chat, reply


def entries_after(heard: list[EngineEvent], place: int) -> list[str]:
    """Who entered the pool from there on, in order."""
    names = {"Started", "Restored"}
    return [one.request_id for one in heard[place:] if type(one).__name__ in names]  # type: ignore[union-attr]


def test_s15_who_waits_for_an_answer_lends_its_room_out_and_comes_back_first(
    play: Play, tmp_path: Path, starter_model: Path
) -> None:
    async def story() -> None:
        flags = {"engine__ctx_size": POOL_TOKENS, "engine__parallel": 3}
        async with open_real(tmp_path, **flags) as real:
            settings = real.services.settings
            settings.change("tools.grace_s", 1)
            desk = real.services.chats.desk
            assert desk is not None
            desk.service.store.add((CLOCK,))
            assert await real.services.models.load(str(starter_model))
            heard: list[EngineEvent] = []
            real.gate.engine.subscribe(heard.extend)

            chat, reply = await with_tools(real)
            assert reply.is_asking
            assert reply.calls[0].tool == "noon"
            first_id, said = reply_request_id(reply), reply.text

            def is_lent() -> bool:
                run = real.run(reply)
                return run is not None and run.wait is not None

            await until(is_lent)  # the grace has passed, and the user is not there
            run = real.run(reply)
            assert run is not None
            assert run.state is RunState.AWAITS_OWNER
            assert run.wait is not None
            assert run.wait.kind is WaitKind.OWNER
            assert real.services.runs.snapshot().holdings == ()
            words = describe_row(reply, run).text
            assert words == " · ".join((tr("Asks you"), tr("room lent")))
            real.window.commands[CommandId.POOL].trigger()
            await real.shoot("s15-lent-out")

            others = await real.send_at_once(WRITES, PROMPTS)
            await real.run_until(3, 60)
            assert real.gate.is_shut
            waiting = [one for one in others if one.status is MessageStatus.QUEUED]
            assert waiting, "three have the seats, the fourth stands in line"
            await real.window.panes.show_chat(chat)
            await real.shoot("s15-others-have-the-room")
            place = len(heard)
            real.pane.approval.once.click()
            await until(lambda: reply.status is MessageStatus.DONE)
            following = chat.messages[-1]
            assert following is not reply
            assert reply.text == said
            assert reply.calls[0].state is ToolUseState.DONE
            assert reply.calls[0].result == "It is noon."
            real.gate.open()
            await until(lambda: not following.status.is_alive)
            entered = entries_after(heard, place)
            assert entered[0] == reply_request_id(following), entered
            started = next(
                one
                for one in heard[place:]
                if isinstance(one, Started) and one.request_id == entered[0]
            )
            assert started.cached_tokens >= 64, "its state was kept: only what is new is read"
            await real.shoot("s15-back-first")
            await until(lambda: not any(one.status.is_alive for one in others))
            assert first_id not in {run.request_id for run in real.services.runs.snapshot().runs}

            _, again = await with_tools(real, always=(("clock", "noon"),))
            chat_again = real.chat_of(again)
            await until(lambda: chat_again.running_message is None)
            assert [one.text for one in chat_again.messages] == [one.text for one in chat.messages]

    play(story())
