"""From the composer to the chat: what does not fit is asked about first, and a message may wait behind a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from engine.api import EngineSnapshot, EngineState, LoadOptions, ModelChanged
from fakes.fake_engine import TINY_MODEL, FakeEngine
from fakes.fake_tools import NOTES, WEATHER
from fakes.fake_window import Stage, open_stage, until
from studio.models.load_choices import LoadChoices
from studio.models.tool_servers import LinkState
from studio.models.tool_use import ChatTools
from studio.views.actions import CommandId
from studio.views.chat.chat_pane import ChatPane
from studio.views.chat.overflow_panel import OverflowPanel
from studio.views.chat.queued_bar import QueuedBar
from studio.views.status_words import describe_chat
from studio.views.wrapped_button import WrappedButton

WORDS_OF_TOOLS = sum(
    len(f"{one.name} {one.description} {one.parameters}".split()) for one in (WEATHER, NOTES)
)
Play = Callable[[Coroutine[Any, Any, None]], None]


def type_and_send(pane: ChatPane, text: str) -> None:
    pane.composer._input.setPlainText(text)
    pane.composer._button.click()


async def fill(stage: Stage, *, turns: int, words: int) -> ChatPane:
    """A chat of answered turns; the fake engine takes each word for a token, and its window has 2,048."""
    chat, pane = stage.chats.chats[0], stage.window.panes.active
    for _ in range(turns):
        request_id = await stage.ask(chat, "w " * words)
        stage.engine.start(request_id)
        stage.engine.say(request_id, "w " * words)
        stage.engine.finish(request_id)
        await until(lambda: chat.running_message is None)
    return pane


def test_what_has_no_room_for_a_message_is_called_by_its_name(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, panel = stage.window.panes.active, stage.window.panes.active.sending.overflow
            for window_tokens, words in (
                (2048, "This would be 3,000 tokens; the model reads 2,048 at once."),
                (1024, "This would be 3,000 tokens; the pool has room for 1,024."),
            ):
                stage.engine.publish_window(window_tokens)
                type_and_send(pane, "w " * 3000)
                await until(panel.isVisible)
                assert words in [label.text() for label in panel.findChildren(QLabel)]
                panel.cancel.click()

    play(story())


def test_a_chat_beyond_the_window_is_cut_only_as_chosen(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = await fill(stage, turns=6, words=170)
            panel, asked = pane.sending.overflow, len(stage.engine.requests)
            type_and_send(pane, "one more " * 20)
            await until(panel.isVisible)
            assert panel.leave_out.text() == "Leave out the oldest 2 messages and send 1,740 tokens"
            assert len(stage.engine.requests) == asked
            panel.cancel.click()
            assert not panel.isVisible()
            assert pane.composer.text().startswith("one more")
            pane.composer._button.click()
            await until(panel.isVisible)
            panel.leave_out.setFocus()
            panel.leave_out.click()
            await until(lambda: len(stage.engine.requests) == asked + 1)
            assert QApplication.focusWidget() is pane.composer._input, "not at whatever comes next"
            *_, request = stage.engine.requests.values()
            assert stage.engine.count_tokens(request.prompt) == 1740
            assert len(pane.chat.messages) == 14
            assert pane.composer.text() == ""

    play(story())


def test_what_is_left_out_may_be_summed_up_first(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = await fill(stage, turns=6, words=170)
            asked = len(stage.engine.requests)
            type_and_send(pane, "one more " * 20)
            await until(pane.sending.overflow.isVisible)
            pane.sending.overflow.summarise.click()
            await until(lambda: "summary-1" in stage.engine.alive)
            stage.engine.start("summary-1")
            stage.engine.say("summary-1", "They spoke.")
            stage.engine.finish("summary-1")
            await until(lambda: len(stage.engine.requests) == asked + 2)
            *_, request = stage.engine.requests.values()
            assert "They spoke." in request.prompt.messages[0].content
            assert pane.chat.cut.summary == "They spoke."

    play(story())


async def open_with_long_tools(stage: Stage, *, words: int = 3000) -> ChatPane:
    """A chat whose tools alone are longer than the window; their server was not heard of yet."""
    chat = stage.chats.chats[0]
    stage.tools.tools = (replace(WEATHER, description="w " * words), NOTES)
    stage.chats.set_tools(chat, ChatTools(servers=("home",)))
    return stage.window.panes.active


def shown_buttons(panel: OverflowPanel) -> list[str]:
    return [b.words for b in panel.findChildren(WrappedButton) if b.isVisible()]


def said(panel: OverflowPanel) -> str:
    return "\n".join(one.text() for one in panel.findChildren(QLabel) if one.isVisible())


def test_tools_that_are_too_long_are_named_and_the_message_may_go_without(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = await open_with_long_tools(stage)
            panel = pane.sending.overflow
            type_and_send(pane, "four words of mine")
            await until(panel.isVisible)
            assert "The tools of this chat take 3,0" in said(panel)
            assert "There is room for all of it without them." in said(panel)
            assert shown_buttons(panel) == [
                "Switch the tools off and send",
                "Choose the tools",
                "Change the message",
            ]
            assert not stage.engine.requests
            panel.tools_off.click()
            await until(lambda: len(stage.engine.requests) == 1)
            (request,) = stage.engine.requests.values()
            assert request.prompt.tools == ()
            assert pane.chat.tools.servers == ()
            assert not panel.isVisible()

    play(story())


def test_a_message_that_is_too_long_beside_its_tools_says_both(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = await open_with_long_tools(stage)
            panel = pane.sending.overflow
            type_and_send(pane, "w " * 2500)
            await until(panel.isVisible)
            assert "The tools of this chat take 3,0" in said(panel)
            assert "The message alone is too long; shorten it." in said(panel)
            assert shown_buttons(panel) == ["Choose the tools", "Change the message"]

    play(story())


def test_choosing_the_tools_leads_to_them_and_the_question_goes_when_there_is_room(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = await open_with_long_tools(stage)
            panel, inspector = pane.sending.overflow, stage.window.chat_commands.inspector
            type_and_send(pane, "four words of mine")
            await until(panel.isVisible)
            panel.tools.click()
            switch = inspector.tools.switches["home"]
            await until(lambda: QApplication.focusWidget() is switch)
            await until(lambda: not switch.visibleRegion().isEmpty())
            assert panel.isVisible()
            switch.click()
            await until(lambda: not panel.isVisible())
            assert QApplication.focusWidget() is switch
            assert pane.composer.text() == "four words of mine"
            switch.click()
            pane.composer._button.click()
            await until(panel.isVisible)

    play(story())


def test_a_chat_that_was_left_while_its_message_was_counted_asks_when_it_is_looked_at(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            first, second = stage.chats.chats
            pane = stage.window.panes.active
            await pane.show_chat(first)
            stage.tools.tools = (replace(WEATHER, description="w " * 3000),)
            stage.chats.set_tools(first, ChatTools(servers=("home",)))
            stage.tools.may_start.clear()
            type_and_send(pane, "four words of mine")
            await until(lambda: stage.tools.status("home").state is LinkState.STARTING)
            await pane.show_chat(second)
            stage.tools.may_start.set()
            await until(lambda: first.queued is not None)
            assert describe_chat(first, 0.0).text == "A message is too long to be sent"
            assert not pane.sending.overflow.isVisible()
            await pane.show_chat(first)
            await until(pane.sending.overflow.isVisible)
            assert pane.composer.text() == "four words of mine"
            assert first.queued is None

    play(story())


@pytest.mark.parametrize("leaves", ["chat", "pane"])
def test_what_was_typed_since_is_not_set_aside_for_what_was_too_long(
    play: Play, tmp_path: Path, leaves: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            first, second = stage.chats.chats
            panes = stage.window.panes
            await panes.active.show_chat(first)
            stage.tools.tools = (replace(WEATHER, description="w " * 3000),)
            stage.chats.set_tools(first, ChatTools(servers=("home",)))
            stage.tools.may_start.clear()
            pane = panes.active
            type_and_send(pane, "four words of mine")
            await until(lambda: stage.tools.status("home").state is LinkState.STARTING)
            pane.composer._input.setPlainText("on second thoughts")
            if leaves == "chat":
                await pane.show_chat(second)
            else:
                await panes.split(second)
                panes.close_pane(pane)
            tasks = stage.window.context.tasks
            stage.tools.may_start.set()
            await until(lambda: not tasks.num_running)
            assert first.queued is None
            assert first.draft == "on second thoughts"
            assert not stage.services.notices.notices.notices

    play(story())


def test_what_takes_a_while_to_count_is_told_and_a_second_enter_sends_nothing_twice(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            pane, word = stage.window.panes.active, stage.window.panes.active.sending._word
            stage.chats.set_tools(pane.chat, ChatTools(servers=("home",)))
            stage.tools.may_start.clear()
            type_and_send(pane, "hello")
            await until(word.isVisible)
            assert word.text() == "Starting the tools…"
            pane.composer._button.click()
            stage.tools.may_start.set()
            await until(lambda: stage.engine.requests)
            assert not word.isVisible()
            assert len(stage.engine.requests) == 1

    play(story())


def test_a_message_that_is_too_long_alone_says_so(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = stage.window.panes.active
            type_and_send(pane, "x " * 3000)
            panel = pane.sending.overflow
            await until(panel.isVisible)
            shown = [b.text() for b in panel.findChildren(QPushButton) if b.isVisible()]
            assert shown == ["Change the message"]
            pane.composer._input.setPlainText("short")
            assert not panel.isVisible()

    play(story())


def small_pool(tokens: int) -> EngineSnapshot:
    """The engine with less room than the model could use."""
    ready = FakeEngine.ready_snapshot(TINY_MODEL)
    return replace(ready, window_tokens=tokens, options=LoadOptions(pool_tokens=tokens))


def test_the_limit_is_raised_by_loading_again_and_the_message_is_sent_then(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = stage.window.panes.active
            stage.engine._snapshot = small_pool(512)
            type_and_send(pane, "x " * 600)
            panel = pane.sending.overflow
            await until(panel.isVisible)
            assert not panel.leave_out.isVisible()
            assert panel.raise_limit.text() == "Make room for 768 tokens and load again"
            assert "More room stays set for this model." in panel._why.text()
            kept = stage.models.load_settings.choices
            stage.models.load_settings.change(TINY_MODEL.path, LoadChoices(parallel=2))
            stage.engine._snapshot = small_pool(768)  # as it is when that was done
            panel.raise_limit.click()
            await until(lambda: len(stage.engine.requests) == 1)
            assert ("carry on", str(TINY_MODEL.path)) in stage.models.asked
            assert pane.composer.text() == ""
            assert kept(TINY_MODEL.path) == LoadChoices(pool_tokens=768, parallel=2)

    play(story())


def test_a_limit_that_cannot_be_raised_is_not_kept(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, has_failed = stage.window.panes.active, asyncio.Event()

            async def load(*_args: object, **_options: object) -> bool:
                has_failed.set()
                return False

            stage.models.load = load  # type: ignore[method-assign]
            stage.engine._snapshot = small_pool(512)
            type_and_send(pane, "x " * 600)
            await until(pane.sending.overflow.isVisible)
            pane.sending.overflow.raise_limit.click()
            await has_failed.wait()
            await until(lambda: stage.window.context.tasks.num_running == 0)
            assert stage.models.load_settings.choices(TINY_MODEL.path).is_empty

    play(story())


def test_a_message_waits_behind_the_reply_and_can_be_taken_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            chat, pane = stage.chats.chats[0], stage.window.panes.active
            request_id = await stage.ask(chat, "First")
            await until(lambda: pane.composer._button.accessibleName() == "Stop")
            pane.composer._input.setPlainText("Second")
            pane.composer._queue.click()
            await until(pane.sending.queued.isVisible)
            assert pane.composer.text() == ""
            take_back = pane.sending.queued.findChildren(QPushButton)[1]
            take_back.click()
            await until(lambda: pane.composer.text() == "Second")
            pane.composer._queue.click()
            await until(pane.sending.queued.isVisible)
            stage.engine.start(request_id)
            stage.engine.finish(request_id)
            await until(lambda: len(stage.engine.requests) == 2)
            await until(lambda: not pane.sending.queued.isVisible())
            assert [m.text for m in chat.messages][2] == "Second"

    play(story())


def shown_in(bar: QueuedBar) -> list[str]:
    labels = [one.text() for one in bar.findChildren(QLabel) if one.isVisible()]
    return labels + [one.text() for one in bar.findChildren(QPushButton) if one.isVisible()]


def test_a_message_sent_between_a_models_fetch_and_its_load_waits_for_it(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL, titles=("A",)) as stage:
            pane, is_fetched, go_on = stage.window.panes.active, asyncio.Event(), asyncio.Event()

            async def load(name: str) -> None:
                is_fetched.set()
                await go_on.wait()

            stage.window.reload_flow.load = load  # type: ignore[method-assign]
            stage.window.context.model_actions.get_starter()
            await is_fetched.wait()
            assert stage.models.state is EngineState.NO_MODEL
            assert stage.models.fetching is None
            type_and_send(pane, "Early")
            await until(pane.sending.queued.isVisible)
            assert pane.composer.text() == ""
            wanted = ["Will be sent when the model is there", "Early", "Take back"]
            assert shown_in(pane.sending.queued) == wanted
            stage.engine._snapshot = FakeEngine.ready_snapshot(TINY_MODEL)
            stage.models.say(EngineState.READY)
            stage.engine.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL))
            go_on.set()
            await until(lambda: stage.engine.requests)
            await until(lambda: not pane.sending.queued.isVisible())

    play(story())


def test_messages_of_two_new_chats_given_while_a_model_loads_are_both_sent(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            window = stage.window
            stage.models.say(EngineState.LOADING)
            for number, text in enumerate(("One", "Two")):
                if number:
                    window.commands[CommandId.NEW_CHAT].trigger()
                    await until(lambda: len(stage.chats.chats) == 2)
                    await until(lambda: window.panes.active.chat.queued is None)
                type_and_send(window.panes.active, text)
                await until(lambda: window.panes.active.chat.queued is not None)
            stage.models.say(EngineState.READY)
            stage.engine.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL))
            await until(lambda: len(stage.engine.requests) == 2)
            assert {chat.messages[0].text for chat in stage.chats.chats} == {"One", "Two"}

    play(story())


def test_a_message_whose_reply_before_it_was_stopped_says_that_it_is_not_sent(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            chat, pane = stage.chats.chats[0], stage.window.panes.active
            await stage.ask(chat, "First")
            assert await stage.chats.drafts.queue(chat, "Second")
            bar = pane.sending.queued
            await until(lambda: shown_in(bar) == ["Next", "Second", "Send now", "Take back"])
            stage.chats.stop(chat)
            await until(lambda: shown_in(bar) == ["Not sent yet", "Second", "Send", "Take back"])
            bar.now.click()
            await until(lambda: len(stage.engine.requests) == 2)

    play(story())


def test_a_waiting_message_that_no_longer_fits_is_asked_about_and_not_sent(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            pane = await fill(stage, turns=3, words=250)
            chat = pane.chat
            request_id = await stage.ask(chat, "again " * 200)
            stage.engine.start(request_id)
            asked = len(stage.engine.requests)
            pane.composer._input.setPlainText("and " * 200)
            pane.composer._queue.click()
            await until(lambda: chat.queued is not None and not pane.composer.text())
            pane.composer._input.setPlainText("meanwhile")
            stage.engine.say(request_id, "well " * 250)
            stage.engine.finish(request_id)
            await until(lambda: chat.queued.is_too_long)
            bar = pane.sending.queued
            assert bar.now.text() == "What now…"
            bar.now.click()
            await until(pane.sending.overflow.isVisible)
            assert pane.composer.text().endswith("meanwhile")
            assert len(stage.engine.requests) == asked
            pane.sending.overflow.leave_out.click()
            await until(lambda: len(stage.engine.requests) == asked + 1)

    play(story())


def test_the_meter_counts_the_chat_and_what_is_typed(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = await fill(stage, turns=1, words=100)
            meter = pane.context_watch.meter
            pane.composer._input.setPlainText("one two three")
            await until(lambda: meter.text() == "203 / 2,048")
            assert "203 of 2,048" in meter.accessibleName()
            pane.composer._input.setPlainText("x " * 1700)
            await until(lambda: meter.objectName() == "waiting")
            pane.composer._input.setPlainText("x " * 2000)
            await until(lambda: meter.objectName() == "failed")
            stage.models.say(EngineState.NO_MODEL)
            await until(lambda: not meter.isVisible())

    play(story())


def test_the_meter_counts_the_tools_that_the_model_is_told_of(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = await fill(stage, turns=1, words=100)
            meter, chat = pane.context_watch.meter, stage.chats.chats[0]
            await until(lambda: meter.text() == "200 / 2,048")
            stage.chats.set_tools(chat, ChatTools(servers=("home",)))
            pane.composer._input.setPlainText("one two three")  # then its server is needed
            await until(lambda: meter.text() == f"{203 + WORDS_OF_TOOLS} / 2,048")
            type_and_send(pane, "one two three")
            await until(lambda: len(stage.engine.requests) == 2)
            *_, request = stage.engine.requests.values()
            assert stage.engine.count_tokens(request.prompt) == 203 + WORDS_OF_TOOLS
            stage.chats.stop(chat)
            stage.chats.set_tools(chat, ChatTools())
            await until(lambda: meter.text() == "203 / 2,048")

    play(story())
