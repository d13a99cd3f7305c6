"""Tools on screen: the question above the composer, calls as rows, the chat's choice, the page of servers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QCheckBox, QMessageBox, QWidget

from engine.api import Chat, FinishReason
from engine.runs import RunState, WaitKind, WaitReason
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run
from fakes.shots import shoot, window_size
from studio.models.chat import Conversation, Message, MessageStatus
from studio.models.tool_servers import ToolServer
from studio.models.tool_use import ChatTools, ToolUseState
from studio.services.tools.answers import ToolAnswer
from studio.views.actions import CommandId
from studio.views.announcer import Announcer
from studio.views.chat.tool_view import ToolView
from studio.views.inspector.inspector import Inspector
from studio.views.sidebar.chat_list_model import RowRole
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.status_words import Mark
from studio.views.tool_words import tools_words
from studio.views.tools.servers_page import ServersPage
from studio.views.words import count, tr

Play = Callable[[Coroutine[Any, Any, None]], None]

_TEXT_OF_KEY = "&Answer the question about a tool"
ROOMY = QSize(1280, 800)
LISBON = '{"city": "Lisbon", "days": 3, "units": ["°C", "mm"]}'


async def asking(
    stage: Stage,
    *names: str,
    always: tuple[tuple[str, str], ...] = (),
    text: str = "Let me look that up.",
    arguments: str = LISBON,
) -> Message:
    """A chat whose reply has called these tools, all of it on screen."""
    stage.window.resize(ROOMY)
    chat = stage.chats.chats[0]
    stage.chats.set_tools(chat, ChatTools(servers=("home",), always=always))
    request_id = await stage.ask(chat, "Do I need an umbrella in Lisbon?")
    stage.engine.start(request_id)
    if text:
        stage.engine.say(request_id, text)
    for index, name in enumerate(names):
        stage.engine.call(request_id, name, arguments, call_id=f"c{index}", index=index)
    stage.engine.finish(request_id, FinishReason.TOOL_CALLS)
    reply = chat.messages[-1]
    await until(lambda: reply.status is MessageStatus.TOOLS)
    await until(lambda: views(stage) or not names)
    return reply


def views(stage: Stage) -> list[ToolView]:
    transcript = stage.window.panes.active.transcript
    assert transcript is not None
    return [row.view for _, row in transcript.rows.places if isinstance(row.view, ToolView)]


def chat_row(stage: Stage, chat: Conversation) -> Any:
    model = stage.window.findChild(Sidebar)._model
    for row in range(model.rowCount()):
        index = model.index(row, 0)
        found = index.data(RowRole.ROW)
        if getattr(found, "chat", None) is chat:
            return index.data(RowRole.WORDS)
    return pytest.fail("the chat is not in the list")


async def picture(stage: Stage, name: str, widget: QWidget | None = None) -> None:
    """As it is in a window of the size that is asked for."""
    stage.window.resize(window_size())
    await stage.settle()
    shoot(widget or stage.window, name)
    stage.window.resize(ROOMY)


def test_a_call_is_asked_about_with_the_keyboard_and_its_result_is_folded(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            reply = await asking(stage, "weather", "notes")
            pane, chat = stage.window.panes.active, stage.chats.chats[0]
            card = pane.approval
            question, waits = tr("Run {tool}?"), tr("Waiting for your answer")
            assert card.isVisible()
            assert card.accessibleName() == question.format(tool="weather · home")
            assert card.accessibleDescription().splitlines()[:2] == ["city: Lisbon", "days: 3"]
            assert chat_row(stage, chat).mark is Mark.HAND
            assert chat_row(stage, chat).text == waits
            call = tr("Call of a tool: {tool}, {state}")
            names = [
                call.format(tool=f"{tool} · home", state=waits) for tool in ("weather", "notes")
            ]
            await until(lambda: [view.accessibleName() for view in views(stage)] == names)
            await picture(stage, "tools-asked")
            assert not card.isAncestorOf(QApplication.focusWidget() or stage.window)
            stage.window.commands[CommandId.ANSWER_TOOL].trigger()
            assert QApplication.focusWidget() is card.once
            QTest.keyClick(card.once, Qt.Key.Key_Space)
            await until(lambda: reply.calls[0].state is ToolUseState.DONE)
            assert card.accessibleName() == question.format(tool="notes · home")
            assert QApplication.focusWidget() is card.once
            card.word.setFocus()
            QTest.keyClicks(card.word, "not my notes")
            QTest.keyClick(card.word, Qt.Key.Key_Return)
            await until(lambda: len(stage.engine.requests) == 2)
            assert not card.isVisible()
            assert QApplication.focusWidget() is pane.composer.focusProxy()
            assert reply.calls[1].result == "not my notes"
            await until(lambda: views(stage)[1].accessibleName().endswith(tr("Not allowed")))
            first = views(stage)[0]
            before = first.height()
            first.fold_button.setFocus()
            QTest.keyClick(first.fold_button, Qt.Key.Key_Space)
            await until(lambda: first.height() > before)
            assert first.copy_button.isVisible()
            first.copy_button.click()
            assert QApplication.clipboard().text() == "7 degrees, rain"
            request_id = list(stage.engine.requests)[-1]
            stage.engine.start(request_id)
            stage.engine.say(request_id, "Take one: it rains in Lisbon.")
            stage.engine.finish(request_id)
            await until(lambda: chat.running_message is None)
            await picture(stage, "tools-done")

    play(story())


async def ask_in(stage: Stage, chat: Conversation) -> None:
    stage.chats.set_tools(chat, ChatTools(servers=("home",)))
    request_id = await stage.ask(chat, "Do I need an umbrella?")
    stage.engine.start(request_id)
    stage.engine.call(request_id, "weather", LISBON, call_id="c0", index=0)
    stage.engine.finish(request_id, FinishReason.TOOL_CALLS)
    await until(lambda: chat.is_asking)


def test_the_key_leads_from_each_chat_that_asks_to_the_next(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C", "D")) as stage:
            answer, panes = stage.window.commands[CommandId.ANSWER_TOOL], stage.window.panes
            asking = [chat for chat in stage.chats.chats if chat.title in "ABD"]
            other = next(chat for chat in stage.chats.chats if chat.title == "C")
            await panes.show_chat(other)
            assert not answer.isEnabled()
            for chat in asking:
                await ask_in(stage, chat)
            await until(answer.isEnabled)
            assert panes.active.chat is other

            met = []
            for _ in range(4):
                answer.trigger()
                await until(lambda: panes.active.approval.has_keyboard)
                await until(lambda: not met or panes.active.chat is not met[-1])
                await until(lambda: QApplication.focusWidget() is panes.active.approval.once)
                met.append(panes.active.chat)
            assert set(met[:3]) == set(asking)
            assert met[3] is met[0]

            panes.active.composer.setFocus()
            answer.trigger()
            assert panes.active.chat is met[3], "the chat in view asks first"
            assert panes.active.approval.has_keyboard

    play(story())


@pytest.mark.qt_log_ignore(r"does not support raise\(\)", extend=True)
def test_from_a_window_of_its_own_the_key_leads_to_its_question_and_then_on(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            first, second = stage.chats.chats
            stage.window.chat_commands.windows.open(first)
            window = stage.window.chat_commands.windows.windows[first]
            await until(lambda: window.pane.chat is first)
            await ask_in(stage, second)
            await ask_in(stage, first)
            window.activateWindow()
            await until(window.isActiveWindow)
            answer = next(
                one for one in window.findChildren(QAction) if one.text() == tr(_TEXT_OF_KEY)
            )
            await until(answer.isEnabled)
            answer.trigger()
            await until(lambda: window.pane.approval.has_keyboard)
            answer.trigger()
            await until(lambda: stage.window.panes.active.approval.has_keyboard)
            assert stage.window.panes.active.chat is second

    play(story())


def test_a_reply_that_is_only_a_call_is_seen_too(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            await asking(stage, "weather", text="", arguments="{}")
            (view,) = views(stage)
            await until(lambda: view.isVisible() and view.height() > 20)

    play(story())


def test_a_room_that_is_lent_out_is_said_with_the_hand(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            await asking(stage, "weather")
            chat = stage.chats.chats[0]
            wait = WaitReason(kind=WaitKind.OWNER, place=0)
            assert chat.request_id is not None
            stage.engine.publish(make_run(chat.request_id, RunState.AWAITS_OWNER, wait=wait))
            pane = stage.window.panes.active
            words = " · ".join((tr("Asks you"), tr("room lent")))
            await until(lambda: chat_row(stage, chat).text == words)
            await until(lambda: words in spoken(pane.strip))
            stage.window.resize(window_size())
            stage.window.commands[CommandId.POOL].trigger()
            await until(lambda: chat.request_id in stage.window.pool_panel.rows)
            await picture(stage, "tools-lent-out")

    play(story())


def test_a_chat_that_waits_holds_up_no_load(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            await asking(stage, "weather")
            request_id = stage.chats.chats[0].request_id
            assert request_id is not None
            stage.engine.publish(make_run(request_id, RunState.AWAITS_OWNER))
            assert stage.services.reloads.affected() == ()

    play(story())


def test_always_in_this_chat_is_told_and_can_be_taken_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            await asking(stage, "weather")
            chat = stage.chats.chats[0]
            stage.window.panes.active.approval.always.click()
            await until(lambda: len(stage.engine.requests) == 2)
            assert chat.tools.always == (("home", "weather"),)
            stage.window.resize(window_size())
            stage.window.commands[CommandId.INSPECTOR].trigger()
            tools = stage.window.findChild(Inspector).tools
            assert tools is not None
            assert tools.forget.isVisible()
            await picture(stage, "tools-inspector")
            tools.forget.click()
            assert chat.tools.always == ()
            assert not tools.forget.isVisible()

    play(story())


def test_a_chat_chooses_whose_tools_it_uses(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            stage.window.commands[CommandId.INSPECTOR].trigger()
            tools = stage.window.findChild(Inspector).tools
            assert tools is not None
            tools.switches["home"].click()
            chat = stage.chats.chats[0]
            assert chat.tools.servers == ("home",)
            request = stage.engine.requests[await stage.ask(chat, "Hello")]
            assert isinstance(request.prompt, Chat)
            assert [tool.name for tool in request.prompt.tools] == ["weather", "notes"]
            stage.tools.store.switch("home", is_on=False)
            assert not tools.switches
            tools.declare.click()
            dialog = stage.window.settings_window.dialog
            assert dialog is not None
            assert dialog.findChild(ServersPage).isVisible()

    play(story())


def opened_page(stage: Stage) -> ServersPage:
    stage.window.settings_window.open(page="Tool servers")
    dialog = stage.window.settings_window.dialog
    assert dialog is not None
    return dialog.findChild(ServersPage)


def test_servers_are_declared_tested_switched_and_removed(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            page = opened_page(stage)
            await until(
                lambda: not stage.window.context.tasks.num_running
            )  # the list may be written anew
            row = page.rows["home"]
            row.test.click()
            await until(row.test.isEnabled)
            assert tr("It works: {tools}").format(tools=tools_words(2)) in spoken(row)
            assert "weather · The weather in a city." in spoken(row)
            form = page.form
            form.name.setText("search")
            form.command.setText('run-search --where "two words"')
            form.env.setPlainText("KEY=a=b\n\nMOOD = good")
            dialog = stage.window.settings_window.dialog
            await picture(stage, "tools-servers", dialog)
            form.add.click()
            assert stage.tools.store.find("search") == ToolServer(
                name="search",
                command="run-search",
                args=("--where", "two words"),
                env=(("KEY", "a=b"), ("MOOD", "good")),
                is_on=True,
            )
            page.rows["search"].switch.click()
            assert tr("Switched off") in spoken(page.rows["search"])
            page.rows["search"].remove.click()
            box = stage.window.settings_window.dialog.findChild(QMessageBox)
            next(one for one in box.buttons() if one.text() == tr("Remove")).click()
            assert list(page.rows) == ["home"]

    play(story())


def test_what_a_test_has_found_stays_when_something_else_is_set(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            page = opened_page(stage)
            row = page.rows["home"]
            row.test.click()
            await until(row.test.isEnabled)
            stage.services.settings.change("tools.grace_s", 7)
            stage.tools.store.add((ToolServer(name="other", command="other", is_on=True),))
            assert page.rows["home"] is row
            assert tr("It works: {tools}").format(tools=tools_words(2)) in spoken(row)
            assert list(page.rows) == ["home", "other"]

    play(story())


def test_the_keyboard_is_never_led_to_a_button_that_nobody_chose(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            page = opened_page(stage)
            stage.tools.store.add((ToolServer(name="other", command="other", is_on=True),))
            page.rows["home"].test.setFocus()
            await until(page.rows["home"].test.hasFocus)
            QTest.keyClick(page.rows["home"].test, Qt.Key.Key_Space)
            await until(page.rows["home"].test.isEnabled)
            led_to = QApplication.focusWidget()
            assert led_to is page.rows["home"].test or not isinstance(led_to, QAbstractButton)

            page.rows["home"].switch.setFocus()
            QTest.keyClick(page.rows["home"].switch, Qt.Key.Key_Space)
            assert page.rows["home"].switch.hasFocus()
            assert not page.rows["home"].switch.isChecked()

    play(story())


def test_what_is_wrong_in_the_form_is_said_there(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            form = opened_page(stage).form
            form.name.setText("home")
            form.command.setText("x")
            form.add.click()
            assert "there is a server called 'home' already" in spoken(form).casefold()
            form.command.setText('"')
            form.add.click()
            assert "quotation mark" in spoken(form)
            form.command.setText("x")
            form.env.setPlainText("KEY")
            form.env.setFocus()
            await until(form.env.hasFocus)
            QTest.keyClick(form.env, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
            assert "The line 'KEY' has no '='" in spoken(form)
            form.kind.setCurrentIndex(2)
            form.json.setPlainText("{")
            form.add.click()
            assert "this is no json" in spoken(form).casefold()
            form.json.setPlainText('{"mcpServers": {"more": {"url": "http://localhost:1/mcp"}}}')
            form.add.click()
            assert [one.name for one in stage.tools.store.servers] == ["home", "more"]
            assert form.json.toPlainText() == ""

    play(story())


def test_who_waits_for_an_answer_is_announced_once(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            said: list[str] = []
            notices = stage.services.notices.notices
            announcer = Announcer(stage.chats, said.append, notices)
            await asking(stage, "weather")
            assert said == ["Umbrella waits for your answer"]
            announcer.close()

    play(story())


def test_a_long_result_is_shown_in_part_and_long_names_are_cut(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Umbrella",)) as stage:
            stage.engine.publish_window(100_000)
            stage.tools.answers["weather"] = ToolAnswer(text="rain " * 4000)
            reply = await asking(stage, "weather", always=(("home", "weather"),))
            await until(lambda: reply.calls[0].state is ToolUseState.DONE)
            await until(lambda: views(stage)[0].fold_button.isVisible())
            view = views(stage)[0]
            view.fold_button.click()
            rest = tr("{count} characters more; copy the result to see them")
            rest = rest.format(count=count(14_000))
            await until(lambda: rest in spoken(view))
            await picture(stage, "tools-long-result")

    play(story())


def spoken(widget: QWidget) -> str:
    """All words on a widget that are to be seen."""
    parts = []
    for child in widget.findChildren(QWidget):
        if not child.isVisibleTo(widget):
            continue
        text = getattr(child, "text", None)
        if callable(text) and not isinstance(child, QCheckBox):
            parts.append(str(text()))
    return "\n".join(parts)
