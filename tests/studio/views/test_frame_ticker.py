"""Changes are coalesced: one call a frame, none while nobody looks."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QElapsedTimer, QObject, QTimer
from PySide6.QtWidgets import QWidget

from studio.views.frame_ticker import FrameTicker


class Drawing:
    """Counts how often it was asked to redraw itself."""

    def __init__(self) -> None:
        self.calls = 0

    def redraw(self) -> None:
        self.calls += 1


def test_many_marks_are_one_call(page: QWidget, qtbot: Any) -> None:
    ticker, drawing = FrameTicker(page), Drawing()
    for _ in range(1000):
        ticker.mark(drawing.redraw)
    qtbot.waitUntil(lambda: drawing.calls > 0)
    assert (drawing.calls, ticker.num_flushes) == (1, 1)


def test_flushes_keep_their_distance(page: QWidget, qtbot: Any) -> None:
    ticker, drawing = FrameTicker(page, 50), Drawing()
    clock = QElapsedTimer()
    clock.start()
    while ticker.num_flushes < 4:
        ticker.mark(drawing.redraw)
        qtbot.wait(1)
    assert clock.elapsed() >= 140  # three pauses of 50 ms, coarse timers may be 5% early


@pytest.mark.parametrize(("took_s", "least_ms"), [(0.0001, 20), (0.008, 60), (5.0, 100)])
def test_a_dear_frame_is_followed_by_a_longer_rest_but_no_endless_one(
    page: QWidget, qtbot: Any, took_s: float, least_ms: int
) -> None:
    spent_s = 0.0

    def draw() -> None:
        drawing.redraw()
        QTimer.singleShot(0, paint)

    def paint() -> None:
        """What a frame takes comes after its flush."""
        nonlocal spent_s
        spent_s += took_s

    ticker = FrameTicker(page, 20, cpu_s=lambda: spent_s)
    drawing, clock = Drawing(), QElapsedTimer()
    clock.start()
    for number in (1, 2):
        ticker.mark(draw)
        qtbot.waitUntil(lambda number=number: drawing.calls == number)
    assert clock.elapsed() >= least_ms * 0.9  # coarse timers may be 5% early


def test_a_mark_made_while_flushing_comes_with_the_next_frame(page: QWidget, qtbot: Any) -> None:
    ticker, calls = FrameTicker(page, 1), []

    def again() -> None:
        calls.append(ticker.num_flushes)
        if len(calls) < 3:
            ticker.mark(again)

    ticker.mark(again)
    qtbot.waitUntil(lambda: len(calls) == 3)
    assert calls == [1, 2, 3]


def test_marks_wait_while_paused(page: QWidget, qtbot: Any) -> None:
    ticker, drawing, other = FrameTicker(page, 1), Drawing(), FrameTicker(page, 1)
    seen = Drawing()
    ticker.mark(drawing.redraw)
    ticker.set_paused(is_paused=True)
    other.mark(seen.redraw)
    qtbot.waitUntil(lambda: seen.calls == 1)
    assert drawing.calls == 0
    ticker.set_paused(is_paused=False)
    qtbot.waitUntil(lambda: drawing.calls == 1)


def test_what_was_unmarked_is_not_called(qapp: QObject, page: QWidget, qtbot: Any) -> None:
    ticker, gone, stays = FrameTicker(page), Drawing(), Drawing()
    ticker.mark(gone.redraw)
    ticker.mark(stays.redraw)
    ticker.unmark(gone.redraw)
    qtbot.waitUntil(lambda: stays.calls == 1)
    assert gone.calls == 0
