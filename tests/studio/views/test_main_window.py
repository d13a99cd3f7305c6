"""The window as a user meets it: chats that stream side by side, drafts, keys, notices, the first launch."""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit, QPushButton, QTextBrowser

from engine.api import EngineState, FinishReason, ModelChanged
from fakes.fake_engine import TINY_MODEL
from fakes.fake_window import Stage, open_stage, until
from studio.models.settings import Theme
from studio.views.actions import CommandId
from studio.views.chat.chat_pane import ChatPane
from studio.views.sidebar.conversation_list import Sidebar
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]


def shown_text(pane: ChatPane) -> str:
    """All prose on screen in a pane."""
    return "\n".join(view.toPlainText() for view in pane.findChildren(QTextBrowser))


def type_and_send(stage: Stage, text: str) -> None:
    field = stage.window.panes.active.composer.findChild(QPlainTextEdit)
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


def test_what_is_sent_appears_and_the_reply_streams_in(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = stage.window.panes.active
            type_and_send(stage, "Hello?")
            await until(lambda: stage.engine.requests)
            request_id = next(iter(stage.engine.requests))
            await until(lambda: "Hello?" in shown_text(pane))
            assert pane.composer.text() == ""
            stage.engine.start(request_id)
            for word in ("One ", "two ", "three."):
                stage.engine.say(request_id, word)
            await until(lambda: "One two three." in shown_text(pane))
            stage.engine.finish(request_id)
            await until(lambda: stage.chats.chats[0].running_message is None)

    play(story())


def test_a_burst_of_tokens_is_drawn_in_a_few_frames(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            request_id = await stage.ask(stage.chats.chats[0], "Hello?")
            stage.engine.start(request_id)
            before = stage.window.context.frames.num_flushes
            for number in range(500):
                stage.engine.say(request_id, f"{number} ")
            await until(lambda: "499" in shown_text(stage.window.panes.active))
            assert stage.window.context.frames.num_flushes - before <= 20

    play(story())


def test_two_panes_stream_at_once(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            first, second = stage.chats.chats
            stage.window.commands[CommandId.SPLIT].trigger()
            await until(lambda: len(stage.window.panes.panes) == 2)
            left, right = stage.window.panes.panes
            await until(lambda: right.chat is not None)
            assert {left.chat, right.chat} == {first, second}
            ids = [await stage.ask(pane.chat, f"Ask {n}") for n, pane in enumerate((left, right))]
            for id_ in ids:
                stage.engine.start(id_)
            for number in range(20):
                for side, id_ in zip("LR", ids, strict=True):
                    stage.engine.say(id_, f"{side}{number} ")
            await until(lambda: "L19" in shown_text(left) and "R19" in shown_text(right))
            assert "R" not in shown_text(left).replace("Ask", "")
            assert all(pane.chat.running_message is not None for pane in (left, right))

    play(story())


def test_drafts_survive_switching_chats(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            pane = stage.window.panes.active
            top, other = stage.chats.chats
            QTest.keyClicks(pane.composer.findChild(QPlainTextEdit), "half a thought")
            await stage.window.panes.show_chat(other)
            assert pane.composer.text() == ""
            QTest.keyClicks(pane.composer.findChild(QPlainTextEdit), "another")
            await stage.window.panes.show_chat(top)
            assert pane.composer.text() == "half a thought"
            assert other.draft == "another"

    play(story())


def test_what_is_typed_before_the_first_chat_is_there_is_kept(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            pane = ChatPane(stage.window.context, stage.window)
            QTest.keyClicks(pane.composer.findChild(QPlainTextEdit), "early")
            chat = await stage.chats.new_chat()
            await pane.show_chat(chat)
            assert (pane.composer.text(), chat.draft) == ("early", "early")
            pane.close_pane()

    play(story())


def test_a_pane_that_is_closed_while_its_chat_is_read_stays_closed(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            await stage.ask(stage.chats.chats[0], "Hello?")
        async with open_stage(tmp_path) as stage:
            unread = stage.chats.chats[1]
            stage.window.context.tasks.start(stage.window.panes.split(unread))
            await until(lambda: len(stage.window.panes.panes) == 2)
            stage.window.panes.close_pane(stage.window.panes.panes[1])
            await until(lambda: not stage.window.context.tasks.num_running)
            assert stage.services.notices.notices.notices == ()
            assert stage.window.panes.active is stage.window.panes.panes[0]

    play(story())


def test_escape_stops_the_reply_of_the_active_pane(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            chat = stage.chats.chats[0]
            stop = stage.window.commands[CommandId.STOP]
            assert not stop.isEnabled()
            request_id = await stage.ask(chat, "Hello?")
            stage.engine.start(request_id)
            stage.engine.say(request_id, "Kept")
            await until(lambda: chat.messages[-1].text == "Kept")
            assert stop.isEnabled()
            stop.trigger()
            await until(lambda: request_id in stage.engine.aborted)
            assert chat.messages[-1].text == "Kept"
            assert not stop.isEnabled()

    play(story())


def test_without_a_model_sending_keeps_the_text_and_says_why(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            type_and_send(stage, "Too early")
            await until(lambda: stage.services.notices.notices.notices)
            assert stage.window.panes.active.composer.text() == "Too early"
            assert stage.window.notice_bar.isVisible()
            assert stage.window.notice_bar.notice.code == "model_unavailable"
            assert not stage.engine.requests

    play(story())


def test_what_is_entered_while_the_model_loads_is_sent_once_it_is_ready(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.LOADING) as stage:
            pane = stage.window.panes.active
            type_and_send(stage, "Early")
            await until(pane.sending.queued.isVisible)
            labels = pane.sending.queued.findChildren(QLabel)
            assert {"Will be sent when the model is there", "Early"} <= {
                one.text() for one in labels
            }
            assert not pane.sending.queued.now.isVisible()
            assert (pane.composer.text(), stage.engine.requests) == ("", {})
            type_and_send(stage, "And more")
            notice = stage.window.notice_bar.notice
            assert notice.text == "The model is still loading; your text is kept."
            assert (notice.code, notice.detail) == ("model_unavailable", "")
            stage.models.say(EngineState.READY)
            stage.engine.emit(ModelChanged(state=EngineState.READY, model=TINY_MODEL))
            await until(lambda: stage.engine.requests)
            assert [one.text for one in pane.chat.messages] == ["Early", ""]
            assert pane.composer.text() == "And more"
            assert not pane.sending.queued.isVisible()

    play(story())


def test_the_first_launch_offers_the_starter_model_and_a_file(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL) as stage:
            pane = stage.window.panes.active
            buttons = {b.text(): b for b in pane.start_view.findChildren(QPushButton)}
            assert {"Get the starter model (98 MB)", "Use a file I have…"} <= set(buttons)
            buttons["Get the starter model (98 MB)"].click()
            await until(lambda: ("load", "tiny") in stage.models.asked)
            assert ("fetch", "smollm2-135m") in stage.models.asked

    play(story())


def test_next_chat_skips_what_stands_in_another_pane(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B", "C")) as stage:
            top, middle, bottom = stage.chats.chats
            await stage.window.panes.split(middle)
            stage.window.panes.activate(stage.window.panes.panes[0])
            stage.window.commands[CommandId.NEXT_CHAT].trigger()
            await until(lambda: stage.window.panes.panes[0].chat is bottom)
            stage.window.commands[CommandId.NEXT_CHAT].trigger()
            await until(lambda: stage.window.panes.panes[0].chat is top)

    play(story())


def test_deleting_shows_another_chat_and_the_menu_takes_it_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            doomed, other = stage.chats.chats
            undo = stage.window.commands[CommandId.UNDO]
            assert not undo.isEnabled()
            stage.window.commands[CommandId.DELETE_CHAT].trigger()
            await until(lambda: stage.window.panes.active.chat is other)
            assert doomed not in stage.chats.chats
            await until(undo.isEnabled)
            undo.trigger()
            await until(lambda: doomed in stage.chats.chats)

    play(story())


def test_a_new_chat_is_not_made_while_an_empty_one_is_there(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.window.commands[CommandId.NEW_CHAT].trigger()
            await until(lambda: not stage.window.context.tasks.num_running)
            assert len(stage.chats.chats) == 1
            request_id = await stage.ask(stage.chats.chats[0], "Hello?")
            stage.engine.finish(request_id, FinishReason.STOP)
            stage.window.commands[CommandId.NEW_CHAT].trigger()
            await until(lambda: len(stage.chats.chats) == 2)

    play(story())


def test_the_theme_can_be_switched_while_a_reply_is_on_screen(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            request_id = await stage.ask(stage.chats.chats[0], "Hello?")
            stage.engine.start(request_id)
            stage.engine.say(request_id, "Some `code` and a [link](https://example.org).")
            await until(lambda: "link" in shown_text(stage.window.panes.active))
            stage.window.commands[CommandId.THEME_DARK].trigger()
            assert stage.services.settings.settings.appearance.theme is Theme.DARK
            assert stage.window.commands[CommandId.THEME_DARK].isChecked()
            dark = stage.window.palette().color(QPalette.ColorRole.Window)
            stage.window.commands[CommandId.THEME_LIGHT].trigger()
            light = stage.window.palette().color(QPalette.ColorRole.Window)
            assert dark.lightness() < 60 < 200 < light.lightness()
            assert "link" in shown_text(stage.window.panes.active)

    play(story())


def test_text_is_made_larger_and_smaller_by_keys_within_bounds(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            commands, theme = stage.window.commands, stage.window.context.theme
            sizes = [theme.text_px]
            for command in (CommandId.ZOOM_IN, CommandId.ZOOM_OUT, CommandId.ZOOM_OUT):
                commands[command].trigger()
                sizes.append(theme.text_px)
            assert sizes == [14, 15, 14, 13]
            for _ in range(30):
                commands[CommandId.ZOOM_IN].trigger()
            assert theme.text_px == 28
            for _ in range(30):
                commands[CommandId.ZOOM_OUT].trigger()
            assert theme.text_px == 10
            commands[CommandId.ZOOM_USUAL].trigger()
            assert theme.text_px == 14
            assert not stage.services.notices.notices.notices

    play(story())


def test_nothing_is_drawn_while_the_window_is_hidden(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            chat, pane = stage.chats.chats[0], stage.window.panes.active
            request_id = await stage.ask(chat, "Hello?")
            stage.engine.start(request_id)
            stage.window.hide()
            before = stage.window.context.frames.num_flushes
            stage.engine.say(request_id, "unseen")
            await until(lambda: chat.messages[-1].text == "unseen")
            assert stage.window.context.frames.num_flushes == before
            assert "unseen" not in shown_text(pane)
            stage.window.show()
            await until(lambda: "unseen" in shown_text(pane))

    play(story())


def test_a_chat_that_is_not_on_screen_costs_no_frame(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            hidden = stage.chats.chats[1]
            await stage.chats.open_chat(hidden.chat_id)
            request_id = await stage.ask(hidden, "Hello?")
            stage.engine.start(request_id)
            before = stage.window.context.frames.num_flushes
            for _ in range(50):
                stage.engine.say(request_id, "x ")
            await until(lambda: len(hidden.messages[-1].text) == 100)
            assert stage.window.context.frames.num_flushes == before

    play(story())


def test_the_side_bar_folds_away(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            sidebar = stage.window.findChild(Sidebar)
            action = stage.window.commands[CommandId.SIDEBAR]
            assert sidebar.isVisible()
            assert action.isChecked()
            action.trigger()
            assert not sidebar.isVisible()
            assert not action.isChecked()
            stage.window.commands[CommandId.SEARCH].trigger()
            assert sidebar.isVisible()

    play(story())


def test_closing_the_window_ends_the_wait_for_it(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            stage.window.close()
            await stage.window.wait_closed()
            assert QApplication.focusWidget() is None

    play(story())


def loop_objects() -> set[int]:
    """Ids of the Qt objects that stand behind an event loop."""
    found = (thing for thing in gc.get_objects() if issubclass(type(thing), QObject))
    return {id(thing) for thing in found if type(thing).__module__.startswith("qasync")}


def test_nothing_of_a_loop_is_left_for_other_threads_to_free(play: Play, tmp_path: Path) -> None:
    during: set[int] = set()

    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            stage.engine.finish(await stage.ask(stage.chats.chats[0], "Hello?"))
            during.update(loop_objects() - before)

    before = loop_objects()
    play(story())
    assert during
    assert not during & loop_objects()


def test_a_model_that_is_expected_is_said_to_be_loading_before_it_is(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, state=EngineState.NO_MODEL, titles=("A",)) as stage:
            start, selector = stage.window.panes.active.start_view, stage.window._top.selector
            with stage.models.expecting():
                await stage.settle()
                words = [one.text() for one in start.findChildren(QLabel)]
                assert tr("Loading a model") in words
                assert not [one for one in start.findChildren(QPushButton) if one.isVisible()]
                assert tr("Loading a model") in selector.accessibleName()
                assert stage.window._status._model.text() == tr("Loading a model")
            await stage.settle()
            assert tr("Choose a model") in selector.accessibleName()
            assert [one for one in start.findChildren(QPushButton) if one.isVisible()]

    play(story())
