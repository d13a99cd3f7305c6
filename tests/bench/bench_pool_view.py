"""What the pool panel costs while it is seen, and how late a change is drawn: shares of one core, milliseconds.

Run: python tests/bench/bench_pool_view.py [SECONDS]. Four chats write and three are parked, on a scripted engine that
publishes ten states a second as the real one does. Compared with the same window without the panel, and without the
window being seen at all. CPU time of this process, so that the load of the machine matters little. Not collected by
pytest.
"""
# ruff: noqa: T201 - the table is the point

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import qasync
from PySide6.QtWidgets import QApplication

from engine.api import LoadOptions, PoolUsage
from engine.runs import Holding, ParkUsage, RunState
from fakes.fake_window import Stage, open_stage
from fakes.runs import make_run, make_wait
from studio.views.actions import CommandId

POOL = PoolUsage(
    total_pages=512, free_pages=60, reusable_pages=52, page_tokens=32, page_bytes=737_280
)
EVERY_S = 0.1


def publish(stage: Stage, number: int) -> None:
    """Another state of the engine: everybody has a token more, one page has changed hands."""
    pages = 100 + number % 7
    ids = [f"chatcmpl-{n}" for n in range(7)]
    runs = [make_run(ids[n], held_tokens=3200 + number) for n in range(4)]
    runs += [
        replace(
            make_run(
                ids[n], RunState.PARKED, wait=make_wait(place=n - 3), expected_wait_s=(3.0, 20.0)
            ),
            kept_pages=40,
        )
        for n in range(4, 7)
    ]
    held = (
        Holding(request_ids=(ids[0], ids[1]), pages=8),
        *(Holding(request_ids=(ids[n],), pages=98 if n else pages) for n in range(4)),
    )
    stage.engine._snapshot = replace(
        stage.engine.snapshot(),
        pool=replace(POOL, free_pages=POOL.free_pages - number % 7),
        runs=tuple(runs),
        holdings=held,
        running=4,
        parked=3,
        tokens_per_s=80.0 + number % 3,
        options=LoadOptions(pool_tokens=16384),
        window_tokens=8192,
        parks=ParkUsage(budget_bytes=1 << 30, used_bytes=120 * 737_280),
    )


async def share(stage: Stage, seconds: float) -> float:
    """Of one core, while the engine publishes."""
    began_s, cpu_s, number = time.perf_counter(), time.process_time(), 0
    while (gone_s := time.perf_counter() - began_s) < seconds:
        publish(stage, number := number + 1)
        await asyncio.sleep(EVERY_S)
    return (time.process_time() - cpu_s) / gone_s


async def delays_ms(stage: Stage, rounds: int) -> list[float]:
    """From a state being published to the map having been told of it."""
    found, drawn = [], asyncio.Event()
    stage.window.context.watch.moved.connect(drawn.set)
    for number in range(rounds):
        await asyncio.sleep(0.13 + 0.007 * (number % 11))
        drawn.clear()
        began_s = time.perf_counter()
        publish(stage, number)
        await drawn.wait()
        found.append(1000 * (time.perf_counter() - began_s))
    return found


def frame_share(stage: Stage, frames: int) -> float:
    """Of one core that the map and the bar of memory take at ten pictures a second, drawn whole, the words beside them
    left out.
    """
    watch, figures = stage.window.context.watch, stage.window.pool_panel.figures
    cpu_s = 0.0
    for number in range(frames):
        publish(stage, number)
        watch.look()
        stage.window.repaint()  # or what else has changed would be drawn with them
        began_s = time.process_time()
        figures.show_pictures(watch.snapshot)
        figures.map.repaint()
        figures.memory.repaint()
        cpu_s += time.process_time() - began_s
    return cpu_s / frames * 10


async def measure(seconds: float) -> None:
    async with open_stage(Path(tempfile.mkdtemp()), titles=("A", "B")) as stage:
        publish(stage, 0)
        await share(stage, 1.0)
        closed = await share(stage, seconds)
        stage.window.commands[CommandId.POOL].trigger()
        await share(stage, 1.0)
        opened = await share(stage, seconds)
        drawn = frame_share(stage, 200)
        late = sorted(await delays_ms(stage, 60))
        stage.window.hide()
        hidden = await share(stage, seconds)
    print(f"window hidden        {100 * hidden:6.2f} % of a core")
    print(f"panel closed         {100 * closed:6.2f} %")
    print(f"panel open           {100 * opened:6.2f} %")
    print(f"the panel alone      {100 * (opened - closed):6.2f} %")
    print(f"map and memory bar   {100 * drawn:6.2f} %")
    print(
        f"published to drawn   median {statistics.median(late):.0f} ms, "
        f"p95 {late[int(0.95 * len(late))]:.0f} ms, worst {late[-1]:.0f} ms"
    )


def main() -> None:
    application = QApplication(sys.argv[:1])
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(application)) as runner:
        runner.run(measure(seconds))


if __name__ == "__main__":
    main()
