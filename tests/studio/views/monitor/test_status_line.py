"""The status line: figures from the snapshot, the server's switch, and no work while nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from engine.api import EngineSnapshot, EngineState, PoolUsage
from fakes.fake_engine import TINY_MODEL
from fakes.fake_window import open_stage, until
from studio.models.settings import Theme as ThemeChoice
from studio.views.monitor.pool_bar import PoolBar
from studio.views.monitor.segments import Kind, Segment, describe_pool
from studio.views.monitor.status_line import (
    ModelLabel,
    StatusLine,
    model_words,
    pool_words,
    work_words,
)
from studio.views.theme import Theme, load_colors

Play = Callable[[Coroutine[Any, Any, None]], None]
POOL = PoolUsage(total_pages=64, free_pages=20, reusable_pages=12, page_tokens=32, page_bytes=1)


def test_the_pool_in_words() -> None:
    assert pool_words(POOL) == "Pool 1,024 of 2,048 tokens in use"
    assert pool_words(PoolUsage()) == "No pool yet"
    assert "384 more keep beginnings" in describe_pool(POOL)


@pytest.mark.parametrize(
    ("snapshot", "text"),
    [
        (EngineSnapshot(), ""),
        (
            EngineSnapshot(running=2, waiting=1, tokens_per_s=84.2),
            "2 running · 1 queued · 84 tok/s",
        ),
        (EngineSnapshot(parked=1, tokens_per_s=84.2), "1 parked"),
    ],
)
def test_the_work_in_words(snapshot: EngineSnapshot, text: str) -> None:
    assert work_words(snapshot) == text


def test_the_model_in_words() -> None:
    states = {
        state: model_words(EngineSnapshot(state=state, model=TINY_MODEL)) for state in EngineState
    }
    assert states[EngineState.READY] == "tiny · F32"
    named = EngineSnapshot(state=EngineState.READY, model=replace(TINY_MODEL, name="tiny.f32"))
    assert model_words(named) == "tiny.f32", "nothing is said twice"
    assert len(set(states.values())) == len(EngineState)


def test_a_scrap_of_a_models_name_is_not_seen(page: QWidget) -> None:
    label = ModelLabel(page)
    label.set_text("tiny-llama-F32")
    width, scrap = label.sizeHint().width(), label.fontMetrics().horizontalAdvance("tiny…")
    assert label.shown(width) == "tiny-llama-F32"
    assert label.shown(width - 1).startswith("tiny-llama")
    assert label.shown(scrap) == ""
    label.set_text("tiny")
    assert label.shown(scrap) == "tiny", "a short name is whole"


def test_the_bar_is_drawn_in_proportion(theme: Theme, page: QWidget) -> None:
    bar = PoolBar("Pool", theme, page)
    bar.set_size(128, 8)
    bar.show_segments(
        (Segment(Kind.HELD, 32, (2,)), Segment(Kind.KEPT, 12), Segment(Kind.FREE, 20)), "words"
    )
    image = bar.grab().toImage()
    colors = load_colors(ThemeChoice.LIGHT)
    found = [image.pixelColor(x, 4).name() for x in (4, 60, 70, 80, 100)]
    assert found[:2] == [theme.hues[2].name()] * 2
    assert found[2] == found[3] not in (colors.accent.name(), colors.track.name())
    assert found[4] == colors.track.name()
    assert bar.segment_at(70) == Segment(Kind.KEPT, 12)


def test_the_line_follows_the_snapshot_only_while_it_is_seen(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            line = stage.window.findChild(StatusLine)
            snapshot = stage.engine.ready_snapshot(TINY_MODEL)
            stage.engine._snapshot = replace(snapshot, running=3)
            labels = line.findChildren(QLabel)
            await until(lambda: any("3 running" in label.text() for label in labels))
            timer = stage.window.context.watch.findChild(QTimer)
            assert timer.interval() >= 250
            stage.window.hide()
            assert not timer.isActive()
            stage.window.show()
            assert timer.isActive()

    play(story())


def test_the_server_is_switched_from_its_button(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            line = stage.window.findChild(StatusLine)
            button = line.findChildren(QPushButton)[-1]
            assert button.text() == "Server off"
            button.click()
            line.server_menu.actions()[0].trigger()
            await until(lambda: button.text() == "Server 127.0.0.1:8484")
            button.click()
            copy, _, stop = line.server_menu.actions()
            copy.trigger()
            assert QGuiApplication.clipboard().text() == "http://127.0.0.1:8484/v1"
            stop.trigger()
            await until(lambda: button.text() == "Server off")

    play(story())


def test_a_load_is_told_as_soon_as_it_is_asked_for(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            labels = stage.window.findChild(StatusLine).findChildren(QLabel)
            stage.models.say(EngineState.LOADING)
            assert any(label.text() == "Loading a model" for label in labels)

    play(story())
