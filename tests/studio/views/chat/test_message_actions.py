"""What is done with messages in the window: edited, answered again, continued, branched, deleted, other versions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QPlainTextEdit, QPushButton

from engine.api import EngineState, FinishReason
from fakes.fake_window import Stage, open_stage, until
from studio.models.chat import Conversation, Message, MessageStatus
from studio.views.chat.chat_pane import ChatPane
from studio.views.chat.foot_view import FootView, MessageAction
from studio.views.chat.message_editor import MessageEditor

Play = Callable[[Coroutine[Any, Any, None]], None]


async def answered(stage: Stage, text: str = "The answer.") -> tuple[ChatPane, Conversation]:
    """A chat with one prompt and its answer, on screen."""
    chat, pane = stage.chats.chats[0], stage.window.panes.active
    await answer(stage, await stage.ask(chat, "A prompt"), text)
    await until(lambda: pane.transcript is not None)
    return pane, chat


async def answer(stage: Stage, request_id: str, text: str) -> None:
    stage.engine.start(request_id)
    stage.engine.say(request_id, text)
    stage.engine.finish(request_id)
    chat = stage.chats.chats[0]
    await until(lambda: chat.running_message is None)


async def click(pane: ChatPane, message: Message, action: MessageAction) -> None:
    foot = pane.transcript.foot_of(message)
    assert isinstance(foot, FootView)
    foot.make_buttons()
    assert not foot.buttons[action].isHidden()
    foot.buttons[action].click()


def said(pane: ChatPane) -> list[str]:
    return [section.message.text for section in pane.transcript.rows.sections]


async def next_request(stage: Stage, act: Coroutine[Any, Any, None]) -> str:
    known = set(stage.engine.requests)
    await act
    await until(lambda: len(stage.engine.requests) > len(known))
    return next(id_ for id_ in stage.engine.requests if id_ not in known)


def test_a_reply_asked_for_again_is_a_version_and_both_can_be_seen(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = await answered(stage)
            again = click(pane, chat.messages[1], MessageAction.REGENERATE)
            await answer(stage, await next_request(stage, again), "Another one.")
            assert said(pane) == ["A prompt", "Another one."]
            await click(pane, chat.messages[1], MessageAction.PREVIOUS)
            await until(lambda: said(pane) == ["A prompt", "The answer."])
            foot = pane.transcript.foot_of(chat.messages[1])
            assert foot._version == (1, 2)
            await click(pane, chat.messages[1], MessageAction.NEXT)
            await until(lambda: said(pane) == ["A prompt", "Another one."])

    play(story())


def test_a_prompt_is_edited_in_its_place(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = await answered(stage)
            prompt = chat.messages[0]
            await click(pane, prompt, MessageAction.EDIT)
            editor = pane.findChild(MessageEditor)
            assert editor.text() == "A prompt"
            editor.cancelled.emit()
            await until(lambda: pane.transcript.foot_of(prompt) is not None)
            await click(pane, prompt, MessageAction.EDIT)
            editor = pane.transcript.rows.sections[0].rows[0].view
            assert isinstance(editor, MessageEditor)
            editor.findChild(QPlainTextEdit).setPlainText("A better prompt")

            async def send() -> None:
                editor.findChild(QPushButton, "primarySmall").click()

            await answer(stage, await next_request(stage, send()), "A better answer.")
            assert said(pane) == ["A better prompt", "A better answer."]
            await click(pane, chat.messages[0], MessageAction.PREVIOUS)
            await until(lambda: said(pane) == ["A prompt", "The answer."])

    play(story())


def test_a_reply_can_be_written_otherwise(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = await answered(stage)
            await click(pane, chat.messages[1], MessageAction.EDIT)
            editor = pane.transcript.rows.sections[1].rows[0].view
            assert isinstance(editor, MessageEditor)
            editor.findChild(QPlainTextEdit).setPlainText("My answer.")
            editor.findChild(QPushButton, "primarySmall").click()
            await until(lambda: said(pane) == ["A prompt", "My answer."])
            assert len(stage.engine.requests) == 1

    play(story())


def test_one_message_is_deleted_and_comes_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = await answered(stage)
            await click(pane, chat.messages[1], MessageAction.DELETE)
            await until(lambda: said(pane) == ["A prompt"])
            bar = stage.window.chat_commands.undo_bar
            await until(bar.isVisible)
            bar.take_back()
            await until(lambda: said(pane) == ["A prompt", "The answer."])

    play(story())


def test_a_branch_is_shown_as_a_chat_of_its_own(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = await answered(stage)
            await click(pane, chat.messages[0], MessageAction.BRANCH)
            await until(lambda: pane.chat is not chat and pane.transcript is not None)
            assert said(pane) == ["A prompt"]

    play(story())


def test_a_reply_that_was_cut_off_goes_on(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            chat, pane = stage.chats.chats[0], stage.window.panes.active
            request_id = await stage.ask(chat, "A prompt")
            stage.engine.start(request_id)
            stage.engine.say(request_id, "Half")
            stage.engine.finish(request_id, FinishReason.LENGTH)
            await until(lambda: chat.messages[-1].status is MessageStatus.LENGTH)
            await until(lambda: pane.transcript is not None)
            on = click(pane, chat.messages[1], MessageAction.CONTINUE)
            await answer(stage, await next_request(stage, on), " and half.")
            assert said(pane)[1] == "Half and half."
            foot = pane.transcript.foot_of(chat.messages[1])
            assert foot.buttons[MessageAction.CONTINUE].isHidden()

    play(story())


def test_while_a_chat_answers_only_what_does_not_disturb_is_offered(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = await answered(stage)
            await stage.ask(chat, "More")
            await until(lambda: len(pane.transcript.rows.sections) == 4)
            offered = pane._actions.actions_of(chat.messages[1])
            assert MessageAction.DELETE not in offered
            assert MessageAction.EDIT not in offered
            assert MessageAction.COPY in offered

    play(story())


def test_without_a_model_nothing_is_asked_and_the_reason_is_said(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = await answered(stage)
            stage.models.say(EngineState.NO_MODEL)
            await click(pane, chat.messages[1], MessageAction.REGENERATE)
            assert len(stage.engine.requests) == 1
            await until(stage.window.notice_bar.isVisible)

    play(story())


def test_an_edited_prompt_that_does_not_fit_stays_in_its_editor(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane, chat = await answered(stage)
            await click(pane, chat.messages[0], MessageAction.EDIT)
            editor = pane.transcript.rows.sections[0].rows[0].view
            assert isinstance(editor, MessageEditor)
            editor.findChild(QPlainTextEdit).setPlainText("x " * 3000)
            editor.findChild(QPushButton, "primarySmall").click()
            await until(stage.window.notice_bar.isVisible)
            assert pane.transcript.rows.sections[0].rows[0].view is editor
            assert len(stage.engine.requests) == 1

    play(story())
