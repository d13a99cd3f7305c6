"""The watch tells of a new state soon, of an old one seldom, and a chat keeps its hue from reply to reply."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer

from fakes.fake_window import open_stage, until
from fakes.runs import make_run
from studio.views.run_watch import TICK_MS, Hues
from studio.views.theme import NUM_HUES

Play = Callable[[Coroutine[Any, Any, None]], None]


def test_it_looks_often_only_while_somebody_is_alive(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            watch = stage.window.context.watch
            timer = watch.findChild(QTimer)
            assert timer.interval() == TICK_MS
            stage.engine.publish(make_run("a"))
            watch.look()
            assert timer.interval() < 100
            stage.engine.publish()
            watch.look()
            assert timer.interval() == TICK_MS

    play(story())


def test_a_new_state_is_told_and_the_same_one_is_not(play: Play, tmp_path: Path) -> None:
    async def story() -> None:
        async with open_stage(tmp_path) as stage:
            watch, moves, ticks = stage.window.context.watch, list[object](), list[int]()
            stage.engine.publish(make_run("a"))
            watch.look()
            watch.moved.connect(lambda: moves.append(watch.snapshot))
            watch.ticked.connect(lambda: ticks.append(1))
            stage.engine.publish(make_run("a", held_tokens=700))
            await until(lambda: moves)
            assert moves[0].runs[0].held_tokens == 700
            await until(lambda: len(ticks) >= 3)
            assert len(moves) <= len(ticks) + 1, "beside the ticks only what is new is told"

    play(story())


def test_hues_stay_and_those_of_the_gone_are_taken_last() -> None:
    hues = Hues()
    hues.keep({"chat-1", "chat-2"})
    first, second = hues.of("chat-1"), hues.of("chat-2")
    assert first != second
    hues.keep(set())
    hues.keep({"chat-2", "x"})
    assert hues.of("chat-2") == second
    assert hues.of("x") not in (first, second)
    hues.keep({f"r{n}" for n in range(NUM_HUES)})
    assert len({hues.of(f"r{n}") for n in range(NUM_HUES)}) == NUM_HUES
    hues.keep({f"r{n}" for n in range(3 * NUM_HUES)})
    assert {hues.of(f"r{n}") for n in range(3 * NUM_HUES)} == set(range(NUM_HUES))
    assert hues.of("nobody") == 0
