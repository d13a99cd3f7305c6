"""The pool panel: who holds what in hues, every request with its buttons, and no work while it is hidden."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, QPoint, QPointF
from PySide6.QtGui import QEnterEvent
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from engine.api import PoolUsage
from engine.runs import ParkUsage, ResumeNext, RunState
from fakes.fake_window import ENTRY, Stage, open_stage, until
from fakes.runs import make_run, make_wait
from fakes.shots import lay_out
from studio.models.load_choices import LoadChoices
from studio.views.actions import CommandId
from studio.views.elided_label import ElidedLines
from studio.views.models.load_dialog import LoadDialog
from studio.views.monitor.pool_panel import PoolPanel
from studio.views.monitor.run_row import RunRow
from studio.views.monitor.segments import park_words
from studio.views.run_sentences import Others, reason_sentence
from studio.views.theme import NUM_HUES, Theme

Play = Callable[[Coroutine[Any, Any, None]], None]
POOL = PoolUsage(total_pages=64, free_pages=8, reusable_pages=8, page_tokens=32, page_bytes=1)


@asynccontextmanager
async def open_panel(folder: Path, **more: Any) -> AsyncIterator[tuple[Stage, PoolPanel]]:
    """A stage with the panel on screen."""
    async with open_stage(folder, **more) as stage:
        stage.window.commands[CommandId.POOL].trigger()
        yield stage, stage.window.pool_panel


def said(row: RunRow) -> list[str]:
    return [label.text() for label in row.findChildren(QLabel) if label.text()]


def test_the_budget_in_words() -> None:
    used = ParkUsage(budget_bytes=8 << 30, used_bytes=26 << 20)
    assert park_words(used) == "26 MB of 8 GB for parked chats"
    assert park_words(replace(used, budget_bytes=-1)) == "26 MB for parked chats, no limit"
    assert "off" in park_words(ParkUsage())


def test_the_panel_lists_chats_and_programs_alike(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("Lisbon",)) as stage:
            panel, engine = stage.window.pool_panel, stage.engine
            lisbon = await stage.ask(stage.chats.chats[0], "Plan")
            wait = make_wait(place=1, holders=((lisbon, 1420),))
            program = make_run(
                "chatcmpl-3f2a1b9c", RunState.QUEUED, wait=wait, expected_wait_s=(20.0, 20.0)
            )
            stage.publish(
                make_run(lisbon, held_tokens=1420, is_pinned=True),
                program,
                parks=ParkUsage(budget_bytes=1 << 30),
            )
            assert panel.rows == {}
            stage.window.commands[CommandId.POOL].trigger()
            assert said(panel.rows[lisbon]) == ["Lisbon", "Writing · never parked · 1,420 tokens"]
            assert said(panel.rows["chatcmpl-3f2a1b9c"]) == [
                "API request 3f2a1b",
                "Queued · 1st in line · starts in about 20 s · 640 tokens",
                "Needs room for 1,280 tokens; Lisbon holds 1,420 tokens",
            ]
            row = panel.rows["chatcmpl-3f2a1b9c"]
            row.first_button.click()
            assert engine.commands == [ResumeNext(request_id="chatcmpl-3f2a1b9c")]
            stop = row.more_button.menu_of_run.actions()[-1]
            stop.trigger()
            assert engine.aborted == ["chatcmpl-3f2a1b9c"]
            engine.publish(make_run(lisbon))
            await until(lambda: panel.rows.keys() == {lisbon})
            stage.window.commands[CommandId.POOL].trigger()
            assert panel.isHidden()
            stage.publish()
            assert panel.rows.keys() == {lisbon}

    play(story())


def test_a_reason_that_is_cut_is_whole_in_the_tool_tip_and_for_screen_readers(
    theme: Theme, page: QWidget
) -> None:
    row = RunRow("c", theme, page)
    row.setFixedWidth(220)
    holders = (("l", 1420), ("r", 480))
    run = make_run("c", RunState.PARKED, wait=make_wait(ahead=("m",), holders=holders))
    names = {"c": "Mine", "l": "A title of many words " * 3, "r": "Recipes", "m": "Mail"}
    others = Others(names=names, titles=frozenset("l"), page_tokens=32)
    row.show_run(run, others)
    reason = reason_sentence(None, run, others)
    (label,) = row.findChildren(ElidedLines)
    assert " ".join(label._lines(label.width())) != reason, "it is too long for its room"
    assert label.toolTip() == label.text() == reason
    assert reason in row.accessibleName()


def test_a_row_that_reads_says_its_tokens_once(theme: Theme, page: QWidget) -> None:
    row = RunRow("a", theme, page)
    run = make_run("a", RunState.READING, held_tokens=300, computed_tokens=64)
    row.show_run(run, Others(names={"a": "editor"}))
    assert said(row) == ["editor", "Reading 64 of 300 tokens"]


def pointed(panel: PoolPanel, *, is_over: bool) -> None:
    """What Qt tells the list when the pointer comes and goes."""
    there = QPointF(5, 5)
    event = QEnterEvent(there, there, there) if is_over else QEvent(QEvent.Type.Leave)
    QApplication.sendEvent(panel.runs, event)


def places(panel: PoolPanel) -> dict[str, QPoint]:
    """Where each row's first button is on screen."""
    lay_out()
    return {
        request_id: row.first_button.mapTo(panel, QPoint())
        for request_id, row in panel.rows.items()
    }


def test_the_buttons_of_a_row_stay_where_they_are_when_chats_park_and_return(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_panel(tmp_path, titles=("A rather long title of a chat",)) as (
            stage,
            panel,
        ):
            parked = make_wait(place=2, holders=(("r1", 1420), ("r2", 20)))
            seen = []
            for is_first_parked in (False, True, False):
                runs = [make_run("r1"), make_run("r2"), make_run("r3")]
                runs[not is_first_parked] = make_run(
                    "r2" if not is_first_parked else "r1", RunState.PARKED, wait=parked
                )
                stage.publish(*runs)
                seen.append(places(panel))
                row = panel.rows["r1" if is_first_parked else "r2"]
                assert row.first_button.isEnabled()
            assert seen[0] == seen[1] == seen[2]
            assert len({row.height() for row in panel.rows.values()}) == 1

    play(story())


def test_while_the_pointer_is_over_the_list_a_row_that_ended_keeps_its_place(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_panel(tmp_path) as (stage, panel):
            stage.publish(make_run("r1"), make_run("r2"))
            before = places(panel)
            pointed(panel, is_over=True)
            stage.publish(make_run("r3"), make_run("r2"))
            after = places(panel)
            assert after | before == after
            assert list(panel.rows) == ["r1", "r2", "r3"]
            assert said(panel.rows["r1"])[-1] == "Ended"
            assert not panel.rows["r1"].stop_button.isEnabled()
            panel.rows["r1"].stop_button.click()
            assert stage.engine.aborted == []
            pointed(panel, is_over=False)
            assert list(panel.rows) == ["r2", "r3"]
            pointed(panel, is_over=True)
            panel.hide()
            assert not panel.runs.is_pointed
            panel.show()
            assert places(panel)["r2"] == before["r1"]

    play(story())


def test_words_that_grow_while_the_pointer_is_over_the_list_are_seen_whole(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_panel(tmp_path) as (stage, panel):
            stage.publish(make_run("r1"), pool=replace(POOL, reusable_pages=0))
            pointed(panel, is_over=True)
            large = replace(POOL, total_pages=640_000, free_pages=1, reusable_pages=630_000)
            stage.publish(make_run("r1"), pool=large)
            lay_out()
            labels = [one for one in panel.figures.findChildren(QLabel) if one.isVisible()]
            assert labels
            for label in labels:
                assert label.height() >= label.heightForWidth(label.width()), label.text()

    play(story())


class LeavesWhenHidden(QObject):
    """What Qt does where the pointer is over a row that is hidden: it leaves the list once more."""

    def __init__(self, panel: PoolPanel) -> None:
        super().__init__(panel)
        self._panel = panel

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.HideToParent:
            pointed(self._panel, is_over=False)
        return False


def test_rows_that_ended_go_once_though_the_pointer_was_over_one_of_them(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_panel(tmp_path) as (stage, panel):
            stage.publish(*(make_run(f"r{n}") for n in range(3)))
            pointed(panel, is_over=True)
            stage.publish(make_run("r2"))
            hidden = LeavesWhenHidden(panel)
            for row in panel.rows.values():
                row.installEventFilter(hidden)
            pointed(panel, is_over=False)
            assert list(panel.rows) == ["r2"]
            stage.publish(make_run("r2"), make_run("r3"))
            assert list(panel.rows) == ["r2", "r3"]

    play(story())


def test_hues_stay_with_their_requests_and_differ(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            watch = stage.window.context.watch
            stage.publish(*(make_run(f"r{n}") for n in range(NUM_HUES)))
            before = dict(watch.others.hues)
            assert len(set(before.values())) == NUM_HUES
            stage.publish(*(make_run(f"r{n}") for n in (1, 2, 99)))
            after = watch.others.hues
            assert (after["r1"], after["r2"]) == (before["r1"], before["r2"])
            assert len(set(after.values())) == 3
            stage.publish(*(make_run(f"x{n}") for n in range(3 * NUM_HUES)))
            assert set(watch.others.hues.values()) == set(range(NUM_HUES))

    play(story())


def test_beside_two_panes_it_goes_below_them_and_stays_on_screen(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_stage(tmp_path, titles=("A", "B")) as stage:
            window, panel = stage.window, stage.window.pool_panel
            window.commands[CommandId.POOL].trigger()
            assert panel.isVisible()
            await window.panes.split(stage.chats.chats[1])
            await until(lambda: panel.property("below"))
            assert panel.isVisible()
            await until(lambda: all(pane.width() >= 420 for pane in window.panes.panes))
            window.panes.close_pane(window.panes.panes[-1])
            await until(lambda: not panel.property("below"))
            assert panel.isVisible()

    play(story())


def test_from_the_pool_a_click_leads_to_the_loaded_models_own_size_if_it_has_one(
    play: Play, tmp_path: Path
) -> None:
    async def story() -> None:
        async with open_panel(tmp_path, titles=("Lisbon",)) as (stage, panel):
            stage.models.entries = (ENTRY,)
            stage.models.load_settings.change(ENTRY.path, LoadChoices(pool_tokens=1024))
            panel.figures.size_button.click()
            assert stage.window.settings_window.dialog is None
            dialog = stage.window.models_window.dialog.findChild(LoadDialog)
            assert dialog.pool.value() == 1024
            await until(lambda: dialog.focusWidget() is dialog.pool)
            dialog.pool.setValue(4096)
            assert dialog.keep()
            stage.window.models_window.close()

    play(story())


def test_from_the_pool_a_click_leads_to_its_size(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_panel(tmp_path, titles=("Lisbon",)) as (stage, panel):
            panel.figures.size_button.click()
            dialog = stage.window.settings_window.dialog
            field = dialog.rows["engine.ctx_size"]
            await until(lambda: field.isAncestorOf(QApplication.focusWidget()))
            dialog.close()

    play(story())
