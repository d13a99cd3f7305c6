"""A window of 640 by 400, which is 1280 by 800 at 200 %: whatever is opened, it needs no more and hides nothing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QSize
from PySide6.QtWidgets import QApplication, QLabel, QStyle, QWidget

from engine.api import EngineState
from engine.runs import RunState
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.scenes import SCENES
from fakes.scenes.talk import talk
from fakes.shots import shoot
from studio.models.chat import ContextCut
from studio.services.context_service import ContextUse, CutPlan
from studio.views import window_size
from studio.views.actions import CommandId
from studio.views.chat.foot_view import MessageAction
from studio.views.chat.message_editor import MessageEditor
from studio.views.focus_order import move_focus
from studio.views.model_selector import ModelSelector
from studio.views.top_bar import TopBar

SMALL = QSize(640, 400)
LONG = "A title of very many words that no window has room for in one line"
Play = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(autouse=True)
def _small_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_size, "available", lambda _window: SMALL)


async def opened(stage: Stage) -> Stage:
    stage.window.resize(SMALL)
    await stage.settle()
    return stage


def fits(stage: Stage) -> bool:
    needed = stage.window.minimumSizeHint().boundedTo(SMALL)
    return needed == stage.window.minimumSizeHint() and stage.window.size() == SMALL


def bottom_of(widget: QWidget, stage: Stage) -> int:
    return widget.mapTo(stage.window, QPoint(0, widget.height())).y()


def right_of(widget: QWidget, stage: Stage) -> int:
    return widget.mapTo(stage.window, QPoint(widget.width(), 0)).x()


@pytest.mark.parametrize("num_panes", [1, 2])
@pytest.mark.parametrize(
    "commands",
    [(CommandId.POOL,), (CommandId.INSPECTOR,), (CommandId.POOL, CommandId.INSPECTOR)],
    ids=["pool", "settings", "both"],
)
def test_on_a_large_screen_the_window_becomes_as_small_and_what_is_beside_the_chats_gives_way(
    play: Play,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commands: tuple[CommandId, ...],
    num_panes: int,
) -> None:
    monkeypatch.setattr(window_size, "available", lambda _window: QSize(2000, 1200))

    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            window, panes = stage.window, stage.window.panes
            least = QSize(640 if num_panes == 1 else 820, 400 if len(commands) == 1 else 460)
            for size, is_shown in ((QSize(1500, 700), False), (least, True)):
                window.resize(size)
                await stage.settle()
                if not is_shown and num_panes == 2:
                    await panes.split(stage.chats.chats[1])
                if not is_shown:
                    for command in commands:
                        window.commands[command].trigger()
                    await stage.settle()
                    widths = [pane.width() for pane in panes.panes]
                assert window.size() == size
            parts = {
                CommandId.POOL: window.pool_panel,
                CommandId.INSPECTOR: window.chat_commands.inspector,
            }
            for part in (parts[command] for command in commands):
                assert part.isVisible()
                assert part.visibleRegion().boundingRect().size() == part.size(), "seen whole"
                assert right_of(part, stage) == least.width()
            shoot(window, f"small-{'-'.join(c.value for c in commands)}-{num_panes}")
            assert min(pane.width() for pane in panes.panes) >= 260
            assert right_of(panes, stage) == least.width(), "nothing is beside them"
            window.resize(1500, 700)
            await stage.settle()
            assert [pane.width() for pane in panes.panes] == widths, "as it was"
            window.resize(least)
            await stage.settle()
            for command in commands:
                window.commands[command].trigger()
                await stage.settle()
                assert window.size() == least
            pane = panes.panes[-1]
            assert pane.visibleRegion().boundingRect().size() == pane.size(), "nothing covers it"
            for command in commands:
                window.commands[command].trigger()
                await stage.settle()
                assert window.size() == least, "opened while small it is the same"

    play(story())


def test_whatever_is_opened_beside_one_chat_the_window_stays_as_small(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=(LONG, LONG)) as stage:
            await opened(stage)
            waits = make_wait(holders=(("r0", 1420),))
            runs = [make_run(f"r{n}", RunState.PARKED, wait=waits) for n in range(12)]
            stage.engine.publish(*runs)
            for command in (CommandId.POOL, CommandId.INSPECTOR, CommandId.SIDEBAR):
                stage.window.commands[command].trigger()
                await stage.settle()
                assert fits(stage), command

    play(story())


def test_two_chats_side_by_side_and_the_pool_over_them_stay_within(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            await opened(stage)
            panel, panes = stage.window.pool_panel, stage.window.panes
            stage.window.commands[CommandId.SIDEBAR].trigger()
            await stage.settle()
            await panes.split(stage.chats.chats[1])
            stage.window.commands[CommandId.POOL].trigger()
            await stage.settle()
            assert fits(stage)
            assert panel.isVisible()
            assert min(pane.width() for pane in panes.panes) > 300, "the panel lies over them"
            assert right_of(panel, stage) == SMALL.width()
            panes.close_pane(panes.panes[-1])
            await stage.settle()
            assert panes.panes[0].width() == SMALL.width() - panel.width(), "beside it again"

    play(story())


def test_what_can_be_done_about_a_long_message_can_all_be_reached(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            pane = (await opened(stage)).window.panes.active
            panel, cut = pane.sending.overflow, ContextCut(first_id=1)
            plan = CutPlan(cut=cut, num_messages=2, tokens=17)
            panel.ask(ContextUse(440, 256), plan, pool_tokens=768)
            panel.take_focus()
            await stage.settle()
            assert fits(stage)
            assert bottom_of(pane.composer, stage) < SMALL.height() - 26, "it stays in sight"
            for button in (one for one in panel._buttons if not one.isHidden()):
                assert QApplication.focusWidget() is button
                seen = button.visibleRegion().boundingRect()
                assert seen.size() == button.size(), button.words
                move_focus(stage.window, forward=True)

    play(story())


def test_a_menu_without_room_for_all_of_it_scrolls_and_grows_no_second_column(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            menus = [action.menu() for action in stage.window.menuBar().actions()]
            hint = QStyle.StyleHint.SH_Menu_Scrollable
            assert all(menu.style().styleHint(hint, None, menu) for menu in menus)

    play(story())


def test_what_is_to_be_written_in_is_seen(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            await talk(await opened(stage))
            chat, view = stage.chats.chats[0], stage.window.panes.active.transcript
            foot = view.foot_of(chat.messages[0])
            foot.make_buttons()
            foot.buttons[MessageAction.EDIT].click()
            await stage.settle()
            editor = view.findChild(MessageEditor)
            line = editor.focusProxy()
            assert QApplication.focusWidget() is line
            assert not line.visibleRegion().isEmpty()

    play(story())


def test_a_key_that_is_shown_once_is_seen(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            window = await SCENES["server-keys"](await opened(stage))
            window.resize(SMALL)
            await stage.settle()
            window.keys.secret.forget()
            await stage.settle()
            window.keys.form.name.setText("another")
            window.keys.form.make.click()
            secret = window.keys.secret
            await until(lambda: secret.visibleRegion().boundingRect() == secret.rect())
            assert secret.field.cursorPosition() == 0, "its beginning"
            window.done(0)

    play(story())


def test_a_foot_without_words_has_no_empty_line(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            chat = await talk(await opened(stage))
            foot = stage.window.panes.active.transcript.foot_of(chat.messages[1])
            two_lines = foot.heightForWidth(300)
            await stage.chats.versions.edit_reply(chat, chat.messages[1], "Otherwise.")
            await stage.settle()
            foot = stage.window.panes.active.transcript.foot_of(chat.messages[1])
            assert 2 * foot.heightForWidth(300) == two_lines

    play(story())


@pytest.mark.parametrize("title", ["New chat", LONG])
def test_a_title_has_the_room_that_the_model_makes_no_use_of(
    play: Play, tmp_path: Path, title: str
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=(title,), state=EngineState.NO_MODEL) as stage:
            await opened(stage)
            bar = stage.window.findChild(TopBar)
            name, model = bar.findChild(QLabel, "title"), bar.selector
            assert model.width() - model.fitted_px(model.width()) < 8
            is_whole = name.shown(name.width()) == title
            assert is_whole if title == "New chat" else name.geometry().right() + 8 >= model.x()

    play(story())


def test_the_models_name_gives_way_before_the_window_grows(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=(LONG,)) as stage:
            await opened(stage)
            selector = stage.window.findChild(ModelSelector)
            stage.models.say(EngineState.LOADING, progress=0.42)
            await until(lambda: "Loading" in selector.accessibleName())
            await stage.settle()
            assert "42%" in selector.text(), "how far it is is seen"
            assert fits(stage)

    play(story())
