"""The strip above the composer: a park from its first second to the return, and the buttons that steer it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel

from engine.runs import ParkNow, ParkUsage, Pin, ResumeNext, RunState, WaitKind
from fakes.fake_window import Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.shots import shoot
from studio.models.chat import MessageStatus
from studio.views.actions import CommandId
from studio.views.chat.status_strip import StatusStrip
from studio.views.icon_button import IconButton
from studio.views.words import tr

Play = Callable[[Coroutine[Any, Any, None]], None]
PARKS = ParkUsage(budget_bytes=1 << 30)


def said(strip: StatusStrip) -> str:
    return " | ".join(label.text() for label in strip.findChildren(QLabel) if label.text())


def entry(strip: StatusStrip, text: str) -> QAction:
    return next(one for one in strip.more_button.menu_of_run.actions() if one.text() == text)


async def two_chats(stage: Stage) -> tuple[str, str]:
    """Lisbon writes; the chat in the pane is parked, second in line behind it for room."""
    children, lisbon = stage.chats.chats
    first, second = await stage.ask(lisbon, "Plan"), await stage.ask(children, "Same")
    for request_id in (first, second):
        stage.engine.start(request_id)
        stage.engine.say(request_id, "Day 1")
    stage.engine.park(second)
    wait = make_wait(place=2, pages_needed=36, holders=((first, 1420), (second, 10)))
    stage.engine.publish(
        make_run(first, held_tokens=1420),
        make_run(second, RunState.PARKED, wait=wait, expected_wait_s=(6.0, 10.0)),
        parks=PARKS,
    )
    await until(lambda: children.running_message.status is MessageStatus.PARKED)
    return first, second


def test_a_park_is_told_with_its_reason_and_so_is_the_return(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            _, parked = await two_chats(stage)
            pane = stage.window.panes.active
            await until(lambda: "2nd in line · back in 6 to 10 s" in said(pane.strip))
            assert "Lisbon holds 1,420 tokens and is furthest along" in said(pane.strip)
            assert pane.strip.first_button.isVisible()
            label = pane.composer.findChild(IconButton).accessibleName()
            assert label == "Stop"
            stage.engine.publish(make_run(parked, RunState.BEING_RESTORED), parks=PARKS)
            await until(lambda: said(pane.strip) == "Coming back")
            stage.engine.restore(parked, recomputed_tokens=900)
            stage.engine.publish(make_run(parked, RunState.READING), parks=PARKS)
            await until(lambda: said(pane.strip) == "Re-reading 900 tokens")
            assert not pane.strip.first_button.isVisible()
            stage.engine.say(parked, " and on")
            await until(lambda: "Writing" in said(pane.strip))
            stage.engine.finish(parked)
            await until(lambda: said(pane.strip) == "")
            assert stage.services.notices.notices.notices == ()

    play(story())


def test_the_strip_keeps_its_height_when_a_reply_begins_and_ends(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            strip, chat = stage.window.panes.active.strip, stage.chats.chats[0]
            assert not strip.isVisible()
            heights = set()
            request_id = await stage.ask(chat, "Hello?")
            stage.engine.publish(make_run(request_id), parks=PARKS)
            stage.engine.start(request_id)
            stage.engine.say(request_id, "x")
            await until(lambda: "Writing" in said(strip) and strip.more_button.isVisible())
            heights.add(strip.sizeHint().height())
            stage.engine.finish(request_id)
            await until(lambda: not said(strip))
            heights.add(strip.sizeHint().height())
            assert len(heights) == 1
            assert strip.isVisible()

    play(story())


def test_nothing_moves_when_a_reply_comes_back_from_a_park(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            _, parked = await two_chats(stage)
            strip = stage.window.panes.active.strip
            await until(lambda: strip.first_button.isVisible() and strip.height() > 40)
            tall = strip.height()
            stage.engine.restore(parked)
            stage.engine.publish(make_run(parked), parks=PARKS)
            await until(lambda: "Writing" in said(strip))
            await asyncio.sleep(0)
            assert strip.sizeHint().height() == tall
            stage.engine.finish(parked)
            await until(lambda: strip.height() < tall)

    play(story())


def place_of(strip: StatusStrip) -> QRect:
    button = strip.first_button
    assert button.isVisible()
    return QRect(button.mapTo(strip.window(), QPoint()), button.size())


@pytest.mark.parametrize("is_narrow", [False, True])
def test_while_chats_take_turns_the_button_stays_and_a_click_counts_whenever_it_comes(
    play: Play, tmp_path: Path, *, is_narrow: bool
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            lisbon, parked = await two_chats(stage)
            if is_narrow:
                await stage.window.panes.split(stage.chats.chats[1])
            strip = stage.window.panes.panes[0].strip
            wait = make_wait(place=2, pages_needed=36, holders=((lisbon, 1420), (parked, 10)))
            out = make_run(parked, RunState.PARKED, wait=wait, num_parks=3)
            back = make_run(parked, RunState.BEING_RESTORED, num_parks=3)
            inside = make_run(parked, num_parks=3)
            called = make_run(parked, num_parks=3, is_called=True)
            other = make_run(lisbon, held_tokens=1420)
            places = []
            for run in (out, back, inside, out, inside, called, out):
                stage.engine.publish(other, run, parks=PARKS)
                await stage.settle()
                places.append(place_of(strip))
                strip.first_button.click()
            assert len(set(map(QRect.getRect, places))) == 1
            assert stage.engine.commands == [ResumeNext(request_id=parked)] * 7
            stage.engine.publish(other, called, parks=PARKS)
            stage.engine.restore(parked)
            stage.engine.say(parked, " and on")
            await until(lambda: stage.chats.chats[0].running_message.park is None)
            await stage.settle()
            assert tr("let go first") in said(strip)
            assert tr("It keeps its room for some seconds") in said(strip)
            shoot(stage.window, f"let-go-first-in-time-{is_narrow}")
            stage.engine.publish(inside, parks=PARKS)
            await stage.settle()
            assert not strip.first_button.isVisible(), "there is nobody to take turns with"

    play(story())


def test_the_button_of_one_that_enters_stays_as_long_as_the_pointer_is_near(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            request_id = await stage.ask(stage.chats.chats[0], "Hello?")
            strip = stage.window.panes.active.strip
            queued = make_run(request_id, RunState.QUEUED, wait=make_wait())
            stage.engine.publish(queued, parks=PARKS)
            await stage.settle()
            place = place_of(strip)
            strip.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
            stage.engine.start(request_id)
            stage.engine.publish(make_run(request_id), parks=PARKS)
            await stage.settle()
            assert place_of(strip) == place
            strip.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False)
            await stage.settle()
            assert not strip.first_button.isVisible()

    play(story())


def test_the_button_stands_below_the_reason_in_a_narrow_pane(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            await two_chats(stage)
            strip = stage.window.panes.active.strip
            await until(strip.first_button.isVisible)
            reason = next(one for one in strip.findChildren(QLabel) if "holds" in one.text())
            await until(lambda: strip.first_button.x() > reason.x())
            stage.window._navigation.show_beside(stage.chats.chats[1])
            await until(lambda: strip.first_button.y() >= reason.geometry().bottom())
            assert reason.width() > strip.width() * 0.9

    play(story())


def test_buttons_and_menu_steer_the_chats_request(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            lisbon, parked = await two_chats(stage)
            strip = stage.window.panes.active.strip
            await until(strip.first_button.isVisible)
            strip.first_button.click()
            assert stage.engine.commands == [ResumeNext(request_id=parked)]
            await stage.window.panes.show_chat(stage.chats.chats[1])
            strip = stage.window.panes.active.strip
            await until(strip.more_button.isVisible)
            entry(strip, "Park now").trigger()
            entry(strip, "Never park").trigger()
            assert stage.engine.commands[1:] == [
                ParkNow(request_id=lisbon),
                Pin(request_id=lisbon),
            ]
            entry(strip, "Stop").trigger()
            await until(lambda: lisbon in stage.engine.aborted)

    play(story())


def test_one_parked_by_hand_is_brought_back(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A",)) as stage:
            request_id = await stage.ask(stage.chats.chats[0], "Hello?")
            wait = make_wait(WaitKind.HELD_BY_USER, place=0)
            stage.engine.publish(make_run(request_id, RunState.PARKED, wait=wait), parks=PARKS)
            strip = stage.window.panes.active.strip
            await until(lambda: strip.first_button.text() == "Bring it back")
            assert not entry(strip, "Park now").isEnabled()

    play(story())


def test_the_menu_bar_steers_the_active_chat(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon", "Children")) as stage:
            _, parked = await two_chats(stage)
            commands = stage.window.commands
            await until(commands[CommandId.GO_FIRST].isEnabled)
            commands[CommandId.GO_FIRST].trigger()
            commands[CommandId.NEVER_PARK].trigger()
            commands[CommandId.PARK].trigger()
            assert stage.engine.commands == [
                ResumeNext(request_id=parked),
                Pin(request_id=parked),
                ParkNow(request_id=parked),
            ]
            stage.engine.publish(make_run(parked, is_pinned=True), parks=PARKS)
            await until(lambda: stage.window.panes.active.run.is_pinned)
            assert commands[CommandId.NEVER_PARK].isChecked()
            commands[CommandId.NEVER_PARK].trigger()
            assert stage.engine.commands[-1] == Pin(request_id=parked, is_pinned=False)
            stage.engine.publish(make_run(parked), parks=ParkUsage(budget_bytes=0))
            await until(lambda: not commands[CommandId.PARK].isEnabled())

    play(story())
